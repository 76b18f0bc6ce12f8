"""URLs: the public API under /v1, the admin, and the two health checks."""

from django.contrib import admin
from django.urls import path

from skincare.api import api, healthz, readyz

urlpatterns = [
    path("v1/", api.urls),
    path("admin/", admin.site.urls),
    path("healthz", healthz),
    path("readyz", readyz),
]
