"""The examples of the documents do what they show."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import outstride._functional

PACKAGE = Path(__file__).parent.parent
ROOT = PACKAGE.parent.parent
DOCUMENTS = [ROOT / "docs" / "python.md", ROOT / "README.md", PACKAGE / "README.md"]
EXAMPLE = re.compile(r"```python(?: needs=(\w+))?\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_print_what_is_shown(document: Path) -> None:
    namespace: dict[str, Any] = {}
    examples = EXAMPLE.findall(document.read_text())
    assert examples
    for needs, code, shown in examples:
        if needs and not find_spec(needs):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(document), "exec"), namespace)
        if shown:
            assert printed.getvalue() == shown, code


def test_the_docstrings_example_holds() -> None:
    results = doctest.testmod(outstride._functional)
    assert results.attempted and not results.failed
