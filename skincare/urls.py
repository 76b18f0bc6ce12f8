"""URLs: the public API under /v1, the admin, and the two health checks."""

from django.contrib import admin
from django.urls import include, path

from skincare.api import api
from skincare.telemetry.health import healthz, readyz

urlpatterns = [
    path("v1/", api.urls),
    path("admin/operations/", include("skincare.operations.urls")),
    path("admin/", admin.site.urls),
    path("healthz", healthz),
    path("readyz", readyz),
]
