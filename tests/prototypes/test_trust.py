from __future__ import annotations

import numpy as np
import pytest

from tests.prototypes.worlds import world
from ttgcd.prototypes.calibration import Geometry, unit
from ttgcd.prototypes.text_evidence import Texts
from ttgcd.prototypes.trust import Agreement, agreement


def _measured(texts: Texts, rows: np.ndarray) -> Agreement:
    return agreement(rows, Geometry.of(rows)(rows), texts, 0.5, 5, (0,))


def test_names_that_fit_are_reliable_and_meaningless_ones_are_not():
    rows, _, texts = world(8, 5)
    random = unit(np.random.default_rng(9).normal(size=texts.anchors.shape))
    assert _measured(texts, rows).reliability > 0.8
    assert _measured(Texts(random, texts.words, texts.scale), rows).reliability < 0.3


@pytest.mark.parametrize("known", [1, 2, 3])
@pytest.mark.parametrize("words", [True, False])
def test_so_it_is_with_few_names(known, words):
    rows, _, texts = world(known, 8)
    said = texts.words if words else None
    random = unit(np.random.default_rng(9).normal(size=texts.anchors.shape))
    share = known / (known + 8)
    found = [
        agreement(rows, Geometry.of(rows)(rows), Texts.of(names, said, 20.0), share, 8, (0,))
        for names in (texts.anchors, random)
    ]
    assert found[0].reliability > 0.6
    assert found[1].reliability < 0.3


def test_reliability_is_agreement_above_chance_and_the_weight_follows_the_cosines():
    found = Agreement(share=0.5, chance=0.2, cosine=0.3)
    assert np.isclose(found.reliability, 0.3 / (0.4 * 0.8))
    assert np.isclose(found.weight, found.reliability * 0.3 / 0.6)
    assert Agreement(0.1, 0.4, 0.5).reliability == 0
    assert Agreement(1.0, 1.0, 0.5).reliability == 1.0
