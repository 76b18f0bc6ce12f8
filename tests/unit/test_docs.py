"""The documents name files that are there."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md"), *PROJECT.glob("*/*/README.md")]
)
ENDINGS = "py|md|yaml|html|txt|po|sh|mjs|toml|in|svg|png"
#: `orders/locks.py`, with or without a line number; a pattern (orders/*.py) is none.
IN_CODE = re.compile(rf"`([\w.-]+(?:/[\w.-]+)+\.(?:{ENDINGS}))`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")
#: What a target makes; it is not there before.
MADE = re.compile(r"^var/")


def named_in(document: Path) -> set[Path]:
    """The files that the document names in code, from the project's folder, and by its links."""
    text = document.read_text()
    in_code = {PROJECT / name for name in IN_CODE.findall(text) if not MADE.match(name)}
    return in_code | {document.parent / target for target in LINK.findall(text)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_every_file_that_a_document_names_is_there(document: Path) -> None:
    missing = [str(path) for path in sorted(named_in(document)) if not path.exists()]

    assert missing == []


def test_the_documents_for_newcomers_name_many() -> None:
    for name, at_least in (("architecture.md", 36), ("changing.md", 30)):
        assert len(named_in(PROJECT / "docs" / name)) >= at_least


def test_an_events_way_takes_fewer_than_thirty_six_files() -> None:
    text = (PROJECT / "docs" / "architecture.md").read_text()
    table = text.split("| step | files |")[1].split("\n\n")[0]

    assert 25 < len(set(IN_CODE.findall(table))) < 36


def test_ten_everyday_changes_are_described() -> None:
    text = (PROJECT / "docs" / "changing.md").read_text()

    assert len(re.findall(r"^## ", text, re.MULTILINE)) == 10


def test_the_readme_leads_to_every_document() -> None:
    documents = {*(PROJECT / "docs").rglob("*.md"), PROJECT / "CONTRIBUTING.md"}
    documents.add(PROJECT / "ecs" / "README.md")

    reached = {path.resolve() for path in named_in(PROJECT / "README.md")}
    for path in list(reached):
        if path.suffix == ".md" and path.exists():
            reached |= {target.resolve() for target in named_in(path)}

    assert documents <= reached
