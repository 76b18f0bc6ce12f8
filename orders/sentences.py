"""Sentences for buyers that know themselves in both of the shop's languages."""

from typing import Any, Final, Literal, Self

from django.http import HttpRequest
from django.utils.translation.trans_real import parse_accept_lang_header

Language = Literal["en", "id"]
LANGUAGES: Final[tuple[Language, ...]] = ("en", "id")


class Sentence(str):
    """An English sentence, for logs and for who asks for nothing else, with its Indonesian one.

    Both are templates of `str.format` over the same values. A value may be a sentence itself.
    """

    in_indonesian: str

    def __new__(cls, english: str, indonesian: str, /, **values: Any) -> Self:
        sentence = super().__new__(cls, english.format(**values))
        translated = {name: in_language(value, "id") for name, value in values.items()}
        sentence.in_indonesian = indonesian.format(**translated)
        return sentence


def in_language(value: Any, language: Language) -> Any:
    """Return a sentence in the language; anything else, plain texts too, as it is."""
    if isinstance(value, Sentence):
        return value.in_indonesian if language == "id" else str(value)
    return value


def language_of(request: HttpRequest) -> Language:
    """Return which of our languages the caller's Accept-Language likes best; English without one.

    https://www.rfc-editor.org/rfc/rfc9110.html#name-accept-language
    """
    wanted = request.headers.get("Accept-Language", "")[:200]
    for tag, _ in parse_accept_lang_header(wanted):
        for language in LANGUAGES:
            if tag == language or tag.startswith(f"{language}-"):
                return language
        if tag == "*":
            break
    return "en"
