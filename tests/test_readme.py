"""The README's Python example runs as printed."""

from __future__ import annotations

import doctest
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_example_runs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(README), module_relative=False)
    assert result.attempted >= 4 and result.failed == 0
    assert (tmp_path / "found" / "report.html").is_file()


def test_every_document_it_names_exists() -> None:
    import re

    named = re.findall(r"`((?:docs/)?[\w./-]+\.md)`", README.read_text(encoding="utf-8"))
    assert named
    missing = [name for name in named if not (README.parent / name).is_file()]
    assert not missing
