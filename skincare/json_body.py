"""How the API reads JSON: UTF-8 that every reader understands alike."""

import json
from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser


class StrictParser(Parser):
    """Refuses equal keys, of which readers pick different ones. NaN is refused by the fields.

    django-ninja answers 400 for whatever is raised.
    """

    def parse_body(self, request: HttpRequest) -> Any:
        """Return the value. Raises ValueError and RecursionError."""
        return json.loads(request.body.decode("utf-8"), object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise ValueError("a key is there twice")
    return unique
