"""The shop's routes; after a checkout its events are processed before the answer."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import path, resolve
from django.views.decorators.csrf import csrf_exempt

from skincare import urls
from skincare.events.consumer import process
from skincare.events.models import OutboxEvent

CHECKOUT = "v1/checkout"


@csrf_exempt
def checkout(request: HttpRequest) -> HttpResponse:
    """The shop's checkout, then the worker's work for its two events."""
    found = resolve(f"/{CHECKOUT}", urlconf=urls.__name__)
    response: HttpResponse = found.func(request, *found.args, **found.kwargs)
    if response.status_code == 201:
        order_id = json.loads(response.content)["order_id"]
        events = OutboxEvent.objects.filter(order_id=order_id).order_by("id")
        for payload in list(events.values_list("payload", flat=True)):
            document: dict[str, Any] = payload
            process(document, receive_count=1, worker="inline")
    return response


urlpatterns: list[Any] = [path(CHECKOUT, checkout), *urls.urlpatterns]
