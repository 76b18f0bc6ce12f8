"""Nothing is defined that nobody uses."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Read by name from outside: by Django, and for its date formats.
READ_BY_NAME = {"skincare/settings.py", "skincare/operations/formats/en/formats.py"}
SOURCES = [
    path
    for folder in ("orders", "payments", "skincare", "ecs")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "migrations" not in path.parts
]


def defined(body: list[ast.stmt], *, in_class: bool = False) -> Iterator[str]:
    """The names of constants and plain functions, at the top and constants in classes."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from defined(node.body, in_class=True)
        elif isinstance(node, ast.FunctionDef) and not (in_class or node.decorator_list):
            if not node.name.startswith("__"):  # Python's own
                yield node.name
        elif isinstance(node, ast.Assign):
            yield from (t.id for t in node.targets if isinstance(t, ast.Name) and t.id.isupper())
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target] if isinstance(node.target, ast.Name) else []
            yield from (target.id for target in targets if target.id.isupper())


def test_every_constant_and_function_is_used() -> None:
    names: Counter[str] = Counter()
    for path in [*SOURCES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.py")]:
        names.update(re.findall(r"\w+", path.read_text()))

    unused = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        if str(path.relative_to(ROOT)) not in READ_BY_NAME
        for name in defined(ast.parse(path.read_text()).body)
        if names[name] < 2
    ]

    assert unused == []
