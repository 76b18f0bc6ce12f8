"""Who buys: a guest, the session's user, or the subject of a token of the shop's own login.

The login is another service. It signs a JSON Web Token (RFC 7519) with HS256 and a secret that it
shares with this API: `sub` is the buyer's id, `aud` is "skincare-shop", `exp` is not far off.
Accounts, passwords and their recovery live there, not here.
"""

from typing import Final

import jwt
from django.conf import settings
from django.http import HttpRequest

from orders.models import GUEST

ALGORITHM: Final = "HS256"
AUDIENCE: Final = "skincare-shop"
CLOCK_SKEW_SECONDS: Final = 10
LONGEST_ID: Final = 128  # characters, of the column and of the event contract


class InvalidToken(Exception):
    """The buyer's token does not prove who sends it. The message says why, never the token."""


def buyer_of(request: HttpRequest) -> str:
    """Return the buyer's id, or "guest". Raises `InvalidToken`.

    A bearer token that proves nothing is refused: its sender does not mean to be a guest.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return _subject(token.strip())
    return str(request.user.pk) if request.user.is_authenticated else GUEST


def _subject(token: str) -> str:
    secrets: list[str] = settings.BUYER_TOKEN_SECRETS
    if not secrets:
        raise InvalidToken("this shop takes no buyers' tokens")
    refusal: jwt.PyJWTError | None = None
    for secret in secrets:  # the newer one, then the one before it
        try:
            claims = jwt.decode(
                token,
                secret,
                algorithms=[ALGORITHM],
                audience=AUDIENCE,
                leeway=CLOCK_SKEW_SECONDS,
                options={"require": ["exp", "sub", "aud"]},
            )
        except jwt.InvalidSignatureError as error:
            refusal = error
        except jwt.PyJWTError as error:
            refusal = error
            break
        else:
            return _checked(claims["sub"])
    raise InvalidToken(str(refusal)) from refusal


def _checked(subject: str) -> str:
    if not 1 <= len(subject) <= LONGEST_ID or not subject.isprintable() or subject == GUEST:
        raise InvalidToken(f"sub must be 1 to {LONGEST_ID} printable characters, not {GUEST!r}")
    return subject
