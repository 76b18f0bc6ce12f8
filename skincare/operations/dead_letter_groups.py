"""Dead letters by what they have in common: the same error of the same type of event."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from skincare.operations.dead_letter_messages import DeadLetterMessage


@dataclass(frozen=True)
class DeadLetterGroup:
    """So many dead letters with one error, ids and numbers in it aside; `key` names the group."""

    key: str
    error: str
    event_type: str
    count: int
    oldest: datetime
    newest: datetime


def groups_of(dead_letters: Iterable[DeadLetterMessage]) -> list[DeadLetterGroup]:
    """Return the groups, the largest first."""
    members: dict[str, list[DeadLetterMessage]] = {}
    for dead_letter in dead_letters:
        members.setdefault(dead_letter.group, []).append(dead_letter)
    groups = [
        DeadLetterGroup(
            key=key,
            error=ones[0].error,
            event_type=ones[0].event_type or ones[0].kind,
            count=len(ones),
            oldest=min(one.sent_at for one in ones),
            newest=max(one.sent_at for one in ones),
        )
        for key, ones in members.items()
    ]
    return sorted(groups, key=lambda group: (-group.count, group.error))
