"""Reading environment variables: typed, checked, and never repeated in a message.

A wrong value stops the process with the variable's name and the fix. The value itself is not shown:
what lands in the wrong variable is often a password.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from django.core.exceptions import ImproperlyConfigured

_TRUE: Final = frozenset({"true", "1", "yes", "on"})
_FALSE: Final = frozenset({"false", "0", "no", "off"})
#: A host name (RFC 1123) or an IPv4 address, without a port.
HOST_NAME: Final = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    r"(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
#: Characters. A shorter secret of a gateway could be guessed, and then any payment be forged.
SHORTEST_SECRET: Final = 16
#: Characters, as Django's own check wants.
SHORTEST_KEY: Final = 50
#: Different ones, in a secret.
FEWEST_CHARACTERS: Final = 5
_NOT_COPIED: Final = frozenset("'\"<>`{}")
_PUBLIC_KEY: Final = "xnd_public_"
#: What countries put before their own ending, Indonesia's first. https://publicsuffix.org/list/
_REGISTERED_BELOW: Final = frozenset(
    (
        *("ac", "biz", "co", "desa", "go", "kop", "mil", "my", "net", "or", "ponpes", "sch", "web"),
        *("com", "edu", "gen", "gob", "gouv", "gov", "govt", "gv", "id", "idv", "in", "info"),
        *("int", "ltd", "me", "name", "ne", "nom", "org", "plc", "pro"),
    )
)
#: Where anybody gets a name; at amazonaws.com, below its parts too.
_HOSTS: Final = frozenset(
    (
        *("amazonaws.com", "awsapprunner.com", "azurewebsites.net", "cloudfront.net"),
        *("elasticbeanstalk.com", "github.io", "gitlab.io", "herokuapp.com", "netlify.app"),
        *("ngrok-free.app", "ngrok.io", "onrender.com", "pages.dev", "run.app", "vercel.app"),
        *("web.app", "workers.dev"),
    )
)
#: What the settings take elsewhere than in production, where nothing else is said.
_FOR_DEVELOPMENT: Final = frozenset(
    {"SB-Mid-server-development", "xendit-development-token", "xnd_development_local"}
)


class Environment:
    """The environment's variables. `empty_is_unset`: an empty value is as none at all."""

    def __init__(self, values: Mapping[str, str], *, empty_is_unset: bool = False) -> None:
        self._values = values
        self.empty_is_unset = empty_is_unset

    def is_set(self, name: str) -> bool:
        """Whether the variable has a value that is not empty."""
        return bool(self._values.get(name, "").strip())

    def raw(self, name: str) -> str:
        """Return the value as it is, blanks and all: a generated password may end in one."""
        return self._values.get(name, "")

    def text(self, name: str, *, default: str = "") -> str:
        """Return the value without blanks around it. Raises ImproperlyConfigured for controls."""
        value = self._values.get(name)
        if value is None or (self.empty_is_unset and not value.strip()):
            return default
        value = value.strip()
        if not value.isprintable():
            raise ImproperlyConfigured(
                f"{name} holds a line break or another control character: remove it."
            )
        return value

    def required(self, name: str, *, default: str = "") -> str:
        """Return the value, or `default`. Raises ImproperlyConfigured where both are empty."""
        value = self.text(name, default=default)
        if not value:
            raise ImproperlyConfigured(f"{name} is empty: set it (see .env.example).")
        return value

    def choice(self, name: str, choices: Sequence[str], *, default: str) -> str:
        """Return one of `choices`. Raises ImproperlyConfigured for another value."""
        value = self.text(name, default=default)
        if value not in choices:
            *others, last = choices
            raise ImproperlyConfigured(
                f"{name} is {value[:40]!r}: set it to {', '.join(others)} or {last}."
            )
        return value

    def number(self, name: str, *, default: int, least: int, most: int) -> int:
        """Return a whole number. Raises ImproperlyConfigured for another value."""
        value = self.text(name, default=str(default))
        if not re.fullmatch(r"[0-9]{1,9}", value) or not least <= int(value) <= most:
            raise ImproperlyConfigured(
                f"{name} is not a whole number from {least} to {most}: set it to one, or remove it "
                f"(it is {default} then)."
            )
        return int(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false. Raises ImproperlyConfigured for another value."""
        value = self.text(name, default=str(default)).lower()
        if value not in _TRUE | _FALSE:
            raise ImproperlyConfigured(f"{name} is neither true nor false: set it to one of them.")
        return value in _TRUE

    def words(self, name: str, *, default: Sequence[str]) -> list[str]:
        """Return the comma-separated words."""
        value = self.text(name, default=",".join(default))
        return [word.strip() for word in value.split(",") if word.strip()]


def check_secret(name: str, value: str) -> None:
    """Raise ImproperlyConfigured for a gateway's secret that could be guessed, or was not copied
    as it is.
    """
    if len(value) < SHORTEST_SECRET or not re.fullmatch(r"[!-~]+", value):
        raise ImproperlyConfigured(
            f"{name} is shorter than {SHORTEST_SECRET} characters, or has a blank or a letter that "
            "is not ASCII in it: copy the whole value from the gateway's dashboard."
        )
    if set(value) & _NOT_COPIED:
        raise ImproperlyConfigured(
            f"{name} has quotes or brackets in it: copy the value from the gateway's dashboard, "
            "and nothing around it."
        )
    if is_repeated(value) or value in _FOR_DEVELOPMENT:
        raise ImproperlyConfigured(
            f"{name} can be guessed: copy the value from the gateway's dashboard."
        )
    if value.startswith(_PUBLIC_KEY):
        raise ImproperlyConfigured(
            f"{name} is the gateway's public key, which buyers' browsers know: copy the secret one."
        )


def check_secret_key(name: str, value: str) -> None:
    """Raise ImproperlyConfigured for a key of Django's that could be guessed."""
    make = "make one with `python -c 'import secrets; print(secrets.token_urlsafe(50))'`."
    if len(value) < SHORTEST_KEY:
        raise ImproperlyConfigured(f"{name} is shorter than {SHORTEST_KEY} characters: {make}")
    if len(set(value)) < FEWEST_CHARACTERS:
        raise ImproperlyConfigured(
            f"{name} has fewer than {FEWEST_CHARACTERS} different characters: {make}"
        )
    if is_repeated(value) or value.startswith(("django-insecure-", "only-for-development-")):
        raise ImproperlyConfigured(f"{name} repeats itself, or is not for production: {make}")


def is_repeated(text: str) -> bool:
    """Whether a text is one part of itself again and again, like abcabcabc, or of few letters."""
    return text in (text + text)[1:-1] or len(set(text)) < FEWEST_CHARACTERS


def check_hosts(name: str, hosts: Sequence[str]) -> None:
    """Raise ImproperlyConfigured for what cannot be the name of our own host.

    A leading dot stands for all subdomains, as Django reads it.
    """
    for number, host in enumerate(hosts, start=1):
        domain = host.removeprefix(".")
        if not HOST_NAME.fullmatch(domain) or (host != domain and "." not in domain):
            raise ImproperlyConfigured(
                f"{name}: entry {number} is not a host name. List the API's own names, like "
                "shop.example.com, comma-separated: no *, no scheme, no port."
            )
        if host != domain and is_public_suffix(domain):
            raise ImproperlyConfigured(
                f"{name}: entry {number} takes the names of strangers as well, who get theirs "
                "below the same suffix. Name your own domain, like .shop.example.com."
            )


def is_public_suffix(domain: str) -> bool:
    """Whether anybody can get a name below this domain: com, co.id, or a host's of websites.

    By the form of the names, not by https://publicsuffix.org/list/, which changes every week: it
    knows the endings under which countries register (co.id, com.sg), not those of regions.
    """
    domain = domain.lower()
    name, _, ending = domain.partition(".")
    is_of_country = len(ending) == 2 and name in _REGISTERED_BELOW
    return not ending or is_of_country or domain in _HOSTS or domain.endswith(".amazonaws.com")


def check_region(name: str, region: str) -> None:
    """Raise ImproperlyConfigured for what has not the form of an AWS region."""
    if not re.fullmatch(r"[a-z]{2,3}(-[a-z]+)+-[0-9]{1,2}", region):
        raise ImproperlyConfigured(
            f"{name} is not the name of an AWS region: set it to one like ap-southeast-3."
        )
