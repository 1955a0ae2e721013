"""Re-alignments on disk."""

from __future__ import annotations

import numpy as np
import pytest

from ttgcd.bench.realigned import RealignedOnDisk
from ttgcd.methods.realign import Realigned


def test_what_was_stored_comes_back_and_a_damaged_file_is_absent(tmp_path):
    store = RealignedOnDisk(tmp_path / "kept")
    norms = {"norm.weight": np.array([1.0, 2.0], np.float32)}
    store["key"] = Realigned(norms, [0.5, 0.25], 3.0)
    found = store["key"]
    np.testing.assert_array_equal(found.norms["norm.weight"], norms["norm.weight"])
    assert (found.losses, found.seconds, store.saved, list(store)) == (
        [0.5, 0.25],
        3.0,
        3.0,
        ["key"],
    )
    file = tmp_path / "kept" / "key.npz"
    for damaged in (file.read_bytes()[:40], b"", b"not a zip file"):
        file.write_bytes(damaged)
        with pytest.raises(KeyError):
            store["key"]


def test_a_folder_that_cannot_be_written_costs_time_not_the_run(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = RealignedOnDisk(tmp_path / "file")
    store["key"] = Realigned({}, [], 1.0)
    assert store.get("key") is None
