"""How a bare JSON document found on the queue becomes the call of a task."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Adopted:
    """The task call that a bare document stands for."""

    task: str
    task_id: str
    args: tuple[Any, ...]


#: Takes the decoded JSON object; raises ValueError, whose text is the reason, to quarantine it.
Adopt = Callable[[dict[str, Any]], Adopted]
