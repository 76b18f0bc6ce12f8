"""The English texts: complete, and compiled."""

import ast
import gettext
import re
from pathlib import Path

import orders

ORDERS = Path(orders.__file__).parent
CATALOGUE = ORDERS / "locale" / "en" / "LC_MESSAGES" / "django.po"
PLACEHOLDER = re.compile(r"%\(\w+\)s")


def source_texts() -> dict[str, str]:
    """The messages of the .po file: one line each, as this project writes them."""
    pairs = re.findall(r'^msgid (".+")\nmsgstr (".*")$', CATALOGUE.read_text(), re.MULTILINE)
    return {ast.literal_eval(source): ast.literal_eval(text) for source, text in pairs}


def used_texts() -> set[str]:
    """The messages that the templates and the subjects ask for."""
    used = set(re.findall(r'_\("(.+?)"\)', (ORDERS / "emails.py").read_text()))
    for template in (ORDERS / "templates" / "orders" / "email").iterdir():
        source = template.read_text()
        used |= set(re.findall(r'{% translate "(.+?)" %}', source))
        blocks = re.findall(r"{% blocktranslate .*?%}(.+?){% endblocktranslate %}", source)
        used |= {re.sub(r"{{ (\w+) }}", r"%(\1)s", block) for block in blocks}
    return used


def test_every_text_is_translated_and_no_translation_is_left_over() -> None:
    assert used_texts() == set(source_texts())
    assert all(source_texts().values())


def test_a_translation_fills_in_what_its_source_does() -> None:
    for source, text in source_texts().items():
        assert sorted(PLACEHOLDER.findall(source)) == sorted(PLACEHOLDER.findall(text))


def test_the_compiled_catalogue_is_the_written_one() -> None:
    with CATALOGUE.with_suffix(".mo").open("rb") as compiled:
        english = gettext.GNUTranslations(compiled)

    for source, text in source_texts().items():
        assert english.gettext(source) == text
