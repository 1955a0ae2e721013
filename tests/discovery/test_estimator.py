"""The estimator keeps scikit-learn's conventions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from tests.methods.test_pact import world
from ttgcd import CategoryDiscovery, InputError

#: Checks of scikit-learn that cannot apply, with the reason.
CANNOT_APPLY: dict[str, str] = {}


@pytest.mark.parametrize(
    "estimator,check",
    list(estimator_checks_generator(CategoryDiscovery(n_novel=3, options={"warmup": 20}))),
    ids=lambda value: getattr(getattr(value, "func", None), "__name__", ""),
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks(estimator, check) -> None:
    name = check.func.__name__
    if name in CANNOT_APPLY:
        pytest.skip(CANNOT_APPLY[name])
    check(estimator)


@pytest.fixture
def data():
    return world(2, n=400)


def test_fit_finds_what_discover_finds(data) -> None:
    import ttgcd

    features, anchors, _ = data
    options = {"preset": "paper", "batch_size": 64}
    found = ttgcd.discover(
        features,
        known=list("abcd"),
        anchors=anchors,
        novel=4,
        changes={"warmup": 100},
        shuffle=False,
        **options,
    )
    estimator = CategoryDiscovery(anchors, 4, options={"warmup": 100}, **options).fit(features)
    assert estimator.labels_.tolist() == found.to_arrow().column("category").to_pylist()
    assert [c.kind for c in estimator.categories_].count("novel") == 4


def test_partial_fit_in_any_chopping_answers_like_fit(data) -> None:
    features, anchors, _ = data
    options = {"preset": "paper", "batch_size": 64, "options": {"warmup": 100}}
    whole = CategoryDiscovery(anchors, 4, **options).fit(features)
    steps = CategoryDiscovery(anchors, 4, **options)
    for begin in range(0, 400, 37):
        steps.partial_fit(features[begin : begin + 37])
        assert len(steps.labels_) == min(begin + 37, 400)
    settled = 400 // 64 * 64
    assert steps.labels_[:settled].tolist() == whole.labels_[:settled].tolist()


def test_the_number_may_be_unknown_and_parameters_round_trip(data) -> None:
    features, anchors, _ = data
    estimator = CategoryDiscovery(anchors, preset="paper", options={"warmup": 100})
    copied = clone(estimator).set_params(batch_size=50)
    assert copied.get_params()["batch_size"] == 50 and copied.n_novel == "auto"
    assert len(set(copied.fit_predict(features).tolist())) > 4


@pytest.mark.parametrize("given", [{"n_novel": -1}, {"n_novel": "many"}, {"preset": "none"}])
def test_wrong_parameters_are_named(data, given) -> None:
    features, anchors, _ = data
    with pytest.raises(InputError, match=r"n_novel|preset"):
        CategoryDiscovery(anchors, **given).fit(features)
    with pytest.raises(InputError, match="anchors"):
        CategoryDiscovery(anchors[:, :5]).fit(features)
    assert np.isfinite(features).all()


@pytest.mark.parametrize(
    "names, why", [(0, "no number of groups stands out"), (6, "the known names fit .* too little")]
)
def test_a_count_that_is_not_to_be_believed_is_called_a_guess(names: int, why: str) -> None:
    """Rows without any groups, and names that mean nothing."""
    rng = np.random.default_rng(1)
    rows, anchors = rng.normal(size=(600, 128)), rng.normal(size=(names, 128))
    with pytest.warns(UserWarning, match=f"^{why}.*is a guess, between"):
        CategoryDiscovery(anchors if names else None, random_state=0).fit(rows)
