"""Containers of the image as production runs them, on the host's network."""

import re
from typing import TYPE_CHECKING, Any, Final

import requests
from pytest_celery import CeleryTestWorker, CeleryWorkerContainer
from pytest_docker_tools.exceptions import ContainerFailed

if TYPE_CHECKING:
    from docker.models.containers import Container

USER: Final = 12345
LOCKED_DOWN: Final[dict[str, Any]] = {
    "user": f"{USER}:{USER}",  # any id: the image knows none of its users
    "read_only": True,
    "tmpfs": {"/tmp": ""},  # noqa: S108 the container's
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges"],
    "network_mode": "host",
}
PRODUCTION: Final = {
    "APP_ENV": "production",
    "DJANGO_SETTINGS_MODULE": "skincare.settings",
    "SECRET_KEY": "image-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "ALLOWED_HOSTS": "shop.example",
    "ADMIN_HOSTS": "shop.example",
    "SQS_ENDPOINT_URL": "",
    "ORDER_EVENTS_QUEUE_URL": "https://sqs.ap-southeast-3.amazonaws.com/000000000000/shop",
    "MIDTRANS_SERVER_KEY": "Mid-server-0123456789abcdef",
    "XENDIT_CALLBACK_TOKEN": "callback-0123456789abcdef",
    "XENDIT_SECRET_KEY": "xnd_production_0123456789abcdef",
    "SHOP_URL": "https://shop.example",
    "EMAIL_URL": "smtp+tls://user:secret@127.0.0.1:1",
}
"""Settings that pass every rule of production, and reach nothing but the database."""

FROM_LOAD_BALANCER: Final = {"Host": "shop.example", "X-Forwarded-Proto": "https"}
STOP_SECONDS: Final = 60
"""As long as ecs/api.yaml gives the API to end."""


class Api:
    """A container of the API, as the load balancer asks it."""

    def __init__(self, container: "Container", port: int, *, seconds: float) -> None:
        """seconds: how long an answer may take."""
        self.container = container
        self._url = f"http://127.0.0.1:{port}"
        self._seconds = seconds

    def get(self, path: str) -> requests.Response:
        return requests.get(
            self._url + path,
            headers=FROM_LOAD_BALANCER,
            allow_redirects=False,
            timeout=self._seconds,
        )

    def post(self, path: str, document: dict[str, Any], **headers: str) -> requests.Response:
        return requests.post(
            self._url + path,
            json=document,
            headers={**FROM_LOAD_BALANCER, **headers},
            timeout=self._seconds,
        )

    def answers(self) -> bool:
        self.container.reload()
        assert self.container.status == "running", self.container.logs().decode()
        try:
            return self.get("/readyz").ok
        except requests.RequestException:
            return False

    def stop(self) -> int:
        self.container.stop(timeout=STOP_SECONDS)
        return int(self.container.wait()["StatusCode"])


class WorkerContainer(CeleryWorkerContainer):
    """pytest-celery's worker container, but of our image, and without an address of its own."""

    def ready(self) -> bool:
        """Wait for the worker's own word. The library's way waits for an address too."""
        self.reload()
        if self.status == "exited":
            raise ContainerFailed(self, self.logs())
        return self.status == "running" and self.ready_prompt in self.logs()

    @property
    def client(self) -> "WorkerContainer":
        return self

    @property
    def celeryconfig(self) -> dict[str, Any]:
        """Nothing: the image has its own configuration."""
        return {}

    def stop(self, *, seconds: int) -> int:
        """Stop it as ECS does: SIGTERM, and SIGKILL after some seconds. Return its exit status."""
        self._container.stop(timeout=seconds)
        return int(self._container.wait()["StatusCode"])

    def run(self, *command: str) -> tuple[int, str]:
        """Run a command in it, as a health check is; return exit status and output."""
        status, output = self.exec_run(list(command))
        return status, output.decode()

    def oom_kills(self) -> int:
        """How many of its processes the kernel killed for their memory, as its cgroup counts."""
        counts = "/sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control"
        _, text = self.run("sh", "-c", f"cat {counts} 2>/dev/null")
        found = re.search(r"^oom_kill (\d+)", text, re.MULTILINE)
        assert found, "this kernel does not count"
        return int(found[1])


class ContainerWorker(CeleryTestWorker):
    """The node of pytest-celery's cluster."""

    container: WorkerContainer

    def hostname(self) -> str:
        return str(self.container.id[:12])
