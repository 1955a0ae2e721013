"""Figures: drawn from rows, or from the published figures alone."""

from __future__ import annotations

import pytest
from PIL import Image

from tests.bench.conftest import make_row
from ttgcd.bench.experiment import experiment_names, load_experiment
from ttgcd.bench.figures import draw
from ttgcd.errors import InputError

WITH_FIGURE = [name for name in experiment_names() if load_experiment(name).figure]


@pytest.mark.parametrize("name", WITH_FIGURE)
def test_every_figure_is_drawn_from_rows(name, tmp_path):
    experiment = load_experiment(name)
    rows = [
        make_row(v.label, stream, all_=30 + place, benchmark=target.name)
        for place, v in enumerate(experiment.variants)
        for target in experiment.targets
        for stream in ("fog", "snow")
    ]
    path = draw(experiment, rows, tmp_path / "figure.png")
    pixels = Image.open(path).convert("L")
    assert min(pixels.size) > 400 and len(pixels.getcolors(256) or range(256)) > 20


@pytest.mark.parametrize("name", ["main", "domainnet", "buffer", "estimated_l", "cost", "rates"])
def test_published_figures_alone_are_drawn_too(name, tmp_path):
    assert draw(load_experiment(name), [], tmp_path / "figure.svg").stat().st_size > 1000


def test_what_cannot_be_drawn_is_said(tmp_path):
    with pytest.raises(InputError, match="has no figure"):
        draw(load_experiment("sweeps"), [], tmp_path / "x.png")
    with pytest.raises(InputError, match="nothing to draw"):
        draw(load_experiment("stability"), [], tmp_path / "x.png")
    with pytest.raises(InputError, match="cannot write"):
        draw(load_experiment("main"), [make_row()], tmp_path / "no" / "x.png")
