"""The notebooks run from top to bottom, as a reader would run them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_it_runs(path: Path, tmp_path: Path) -> None:
    """In a process of its own, without a kernel: the cells are plain Python."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (tmp_path / "notebook.py").write_text("\n\n".join(code) + "\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "notebook.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_its_stored_output_names_no_place_of_a_machine(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert outputs
    for output in outputs:
        assert output["output_type"] != "error"
        said = json.dumps({k: v for k, v in output.get("data", {}).items() if "image" not in k})
        assert not any(place in said + json.dumps(output.get("text", "")) for place in
                       ("/tmp/", "/home/", "/root/", "Traceback"))  # fmt: skip
