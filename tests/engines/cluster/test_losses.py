"""The campaign of lost workers and nodes in short; ``python -m faults.cluster`` is all of it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("method", ["scout", "pact"])
def test_lost_workers_and_raylets_leave_no_trace(method):
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    size = ("--kills", "3", "--images", "1200", "--seed", "4")
    done = subprocess.run(
        [sys.executable, "-m", "faults.cluster", *size, "--method", method],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cluster: 3 kills" in done.stdout
    assert "0 files with other bytes" in done.stdout
