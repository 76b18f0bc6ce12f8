"""Who did what by hand: one entry of the admin's own log for each action, kept with its cause.

Entries are written in the action's transaction, so there is no action without its entry.
"""

import json
from typing import Any, Final

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model

from skincare.events.exceptions import ReasonMissing, UnknownActor

#: What `record` is given where somebody deletes a message of the dead-letter queue for good.
DISCARDED: Final = "discarded from the dead-letter queue"

#: The user that entries of the shell and of manage.py belong to. It cannot log in.
SYSTEM_USER: Final = "manage.py"


def check_reason(reason: str) -> None:
    """Raise `ReasonMissing` where a person gave no reason for what they do."""
    if not reason.strip():
        raise ReasonMissing(ReasonMissing.__doc__)


def record(*, actor: str, action: str, subject: Model | str, **details: Any) -> LogEntry:
    """Write that `actor` has done `action` to `subject`: a row, or the name of what has none.

    `actor` is a user's name. One that no user has, such as "root@web-1" from manage.py, is kept in
    the text, and the entry belongs to the user "manage.py", who cannot log in. `details` are kept
    as JSON: give ids and reasons, nothing personal.
    """
    row = None if isinstance(subject, str) else subject
    name = str(subject)
    try:
        user = user_named(actor)
    except UnknownActor:
        user = _system_user()
        details = {"by": actor, **details}
    text = f"{action}: {json.dumps(details, ensure_ascii=False)}" if details else action
    return LogEntry.objects.create(
        user=user,
        content_type=ContentType.objects.get_for_model(row) if row else None,
        object_id=str(row.pk) if row else name,
        object_repr=name[:200],
        action_flag=CHANGE,
        change_message=text,
    )


def user_named(actor: str) -> Any:
    """Return the user of that name, for a row that keeps who did it. Raises `UnknownActor`."""
    users = get_user_model()
    user = users.objects.filter(**{users.USERNAME_FIELD: actor}).first()
    if user is None:
        raise UnknownActor(actor)
    return user


def _system_user() -> Any:
    users = get_user_model()
    user, is_new = users.objects.get_or_create(
        **{users.USERNAME_FIELD: SYSTEM_USER}, defaults={"is_active": False}
    )
    if is_new:
        user.set_unusable_password()
        user.save()
    return user
