"""Features on disk: any of them can be asked for, while more are written."""

from __future__ import annotations

import numpy as np

from ttgcd.engines.features import FeatureFile
from ttgcd.methods.answer import Answer


def test_rows_at_any_places_are_those_that_were_written_last(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    file = FeatureFile(tmp_path / "features.npy")
    for begin in range(0, 50, 10):
        part = slice(begin, begin + 10)
        file.write(None, Answer.make(begin, np.zeros(10), np.zeros(10), features=rows[part]))
    file.write(None, Answer.make(3, [0], [0.0], features=rows[:1]))  # said anew
    wanted = np.array([49, 3, 4, 5, 0, 49, 20])
    expected = rows[wanted]
    expected[1] = rows[0]
    np.testing.assert_allclose(file.at(wanted), expected, atol=1e-3)
    np.testing.assert_array_equal(file.at(np.arange(7, 31)), file.read(7, 31))
    assert file.at(np.zeros(0, np.int64)).shape == (0, 8)
