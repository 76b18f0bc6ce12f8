"""What operating the shop keeps for itself: the workers' signs of life."""

import uuid

from django.db import models


class WorkerReport(models.Model):
    """One worker as it last reported itself, every few seconds as long as it lives.

    `doing` is a list of {"task", "event_id", "since"}; `trouble` is why its transport is not well,
    empty where it is. A worker that ends in good order takes its row away.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    release = models.CharField(max_length=128, blank=True)
    processes = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField(db_index=True)
    state = models.CharField(max_length=16, default="running")
    doing = models.JSONField(default=list)
    trouble = models.TextField(blank=True)

    class Meta:
        ordering = ["host", "pid"]

    def __str__(self) -> str:
        return f"{self.host} ({self.pid})"
