"""This machine's own addresses: reached directly, whatever proxies the environment names."""

import os
from collections.abc import Mapping

HOSTS = ("127.0.0.1", "localhost")


def past_proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that keep calls to this machine from the proxies of `environment`.

    Both spellings: curl and urllib prefer the lower case, others know the upper case alone.
    """
    named = [
        host.strip()
        for name in ("no_proxy", "NO_PROXY")
        for host in environment.get(name, "").split(",")
    ]
    hosts = ",".join(dict.fromkeys([*filter(None, named), *HOSTS]))
    return {"no_proxy": hosts, "NO_PROXY": hosts}


def go_past_proxies() -> None:
    """Let this process, and those that it starts, reach this machine directly."""
    os.environ.update(past_proxies(os.environ))
