from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "skincare.operations"
    label = "operations"
    verbose_name = "Operations"
