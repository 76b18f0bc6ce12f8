"""Calls to this machine go past whatever proxies a developer's network needs."""

import urllib.request

import pytest
import requests

from skincare.local.loopback import past_proxies

PROXIES = {"http_proxy": "http://proxy.example:3128", "ALL_PROXY": "http://proxy.example:3128"}


@pytest.mark.parametrize("spelling", ["no_proxy", "NO_PROXY"])
def test_what_went_past_before_still_does(spelling: str) -> None:
    told = past_proxies({spelling: "intranet.example, 127.0.0.1"})

    assert told["no_proxy"] == told["NO_PROXY"] == "intranet.example,127.0.0.1,localhost"


def test_the_libraries_that_call_our_servers_understand_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (PROXIES | past_proxies({})).items():
        monkeypatch.setenv(name, value)

    assert requests.utils.get_environ_proxies("http://127.0.0.1:8000/") == {}
    assert urllib.request.proxy_bypass("127.0.0.1:4566")
    assert requests.utils.get_environ_proxies("http://shop.example/") != {}
