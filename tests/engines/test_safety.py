"""No file that a user gives can run code: held on the source itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ttgcd

SOURCES = sorted(Path(ttgcd.__file__).parent.rglob("*.py"))
UNSAFE_MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
}
UNSAFE_CALLS = {
    "torch.load",
    "torch.save",
    "torch.jit.load",
    "torch.hub.load",
    "yaml.load",
    "yaml.unsafe_load",
    "pandas.read_pickle",
    "pd.read_pickle",
    "eval",
    "exec",
    "os.system",
    "os.popen",
}


def faults(text: str) -> list[str]:
    """What in a source file could run code from data."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            names = []
        found += [f"imports {name}" for name in names if name.split(".")[0] in UNSAFE_MODULES]
        if isinstance(node, ast.Call):
            found += _call_faults(node)
    return found


def _call_faults(node: ast.Call) -> list[str]:
    name = ast.unparse(node.func)
    options = {k.arg: ast.unparse(k.value) for k in node.keywords}
    found = []
    if name in UNSAFE_CALLS:
        found.append(f"calls {name}")
    if name in ("np.load", "numpy.load") and options.get("allow_pickle") != "False":
        found.append(f"{name} without allow_pickle=False")
    if options.get("allow_pickle", "False") != "False":
        found.append(f"{name} allows pickle")
    if options.get("trust_remote_code", "False") != "False":
        found.append(f"{name} trusts remote code")
    if options.get("shell", "False") != "False":
        found.append(f"{name} uses a shell")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_source_file_runs_code_from_data(path):
    assert faults(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from joblib import load",
        "import numpy as np; np.load('x.npy')",
        "import numpy as np; np.load('x.npy', allow_pickle=True)",
        "import torch; torch.load('x.pt', weights_only=True)",
        "AutoModel.from_pretrained('x', trust_remote_code=True)",
        "subprocess.run('ls', shell=True)",
        "eval('1')",
    ],
)
def test_the_check_sees_what_it_looks_for(line):
    assert faults(line)
