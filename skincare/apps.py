"""The admin's own configuration: its site asks for a code, and logs wrong passwords."""

from django.contrib.admin.apps import AdminConfig as DjangoAdminConfig
from django.contrib.auth.signals import user_login_failed


class AdminConfig(DjangoAdminConfig):
    default_site = "skincare.admin_door.ShopAdminSite"

    def ready(self) -> None:
        from skincare.admin_door import count_failed_login

        super().ready()
        user_login_failed.connect(count_failed_login, dispatch_uid="skincare.admin_door")
