"""The CIFAR-C constants, typed a second time from the published table."""

from __future__ import annotations

import itertools

import pytest

from ttgcd.corruptions import ALL_KINDS, CONSTANTS, HELD_OUT, KINDS

PUBLISHED = {
    "gaussian_noise": ".04 .06 .08 .09 .10",
    "shot_noise": "500 250 100 75 50",
    "impulse_noise": ".01 .02 .03 .05 .07",
    "speckle_noise": ".06 .10 .12 .16 .20",
    "gaussian_blur": ".4 .6 .7 .8 1",
    "glass_blur": ".05,1,1 .25,1,1 .4,1,1 .25,1,2 .4,1,2",
    "defocus_blur": ".3,.4 .4,.5 .5,.6 1,.2 1.5,.1",
    "motion_blur": "6,1 6,1.5 6,2 8,2 9,2.5",
    "fog": ".2,3 .5,3 .75,2.5 1,2 1.5,1.75",
    "frost": "1,.2,.2 1,.3,.2 .9,.4,.2 .85,.4,.2 .75,.45,.2",
    "snow": ".1,.2,1,.6,8,3,.95 .1,.2,1,.5,10,4,.9 .15,.3,1.75,.55,10,4,.9 "
    ".25,.3,2.25,.6,12,6,.85 .3,.3,1.25,.65,14,12,.8",
    "brightness": ".05 .10 .15 .20 .30",
    "saturate": ".3,0 .1,0 1.5,0 2,.1 2.5,.2",
    "contrast": ".75 .5 .4 .3 .15",
    "jpeg_compression": "80 65 58 50 40",
    "pixelate": ".95 .90 .85 .75 .65",
    "elastic_transform": "0,0,2.56 1.6,6.4,2.24 2.56,1.92,1.92 3.2,1.28,1.6 3.2,.96,.96",
    "spatter": ".62,.1,.7,.7,.5,0 .65,.1,.8,.7,.5,0 .65,.3,1,.69,.5,0 "
    ".65,.1,.7,.69,.6,1 .65,.1,.5,.68,.6,1",
}


def test_fifteen_and_four() -> None:
    assert len(KINDS) == 15 and len(HELD_OUT) == 4
    assert set(HELD_OUT) == {"gaussian_blur", "saturate", "spatter", "speckle_noise"}
    assert ALL_KINDS == KINDS + HELD_OUT


@pytest.mark.parametrize("kind", sorted(PUBLISHED))
def test_cifar_constants(kind: str) -> None:
    for ours, text in zip(CONSTANTS["cifar"][kind], PUBLISHED[kind].split(), strict=True):
        published = [float(number) for number in text.split(",")]
        ours = ours if isinstance(ours, tuple) else (ours,)
        assert list(ours) == pytest.approx(published, abs=1e-12)


def test_cifar_zooms() -> None:
    zooms = CONSTANTS["cifar"]["zoom_blur"]
    for factors, end in zip(zooms, (1.05, 1.10, 1.15, 1.20, 1.25), strict=True):
        assert factors[0] == 1 and factors[-1] == pytest.approx(end)
        assert all(b - a == pytest.approx(0.01) for a, b in itertools.pairwise(factors))


@pytest.mark.parametrize("table", ["cifar", "imagenet"])
def test_both_tables_are_complete(table: str) -> None:
    assert set(CONSTANTS[table]) == set(ALL_KINDS)
    assert all(len(values) == 5 for values in CONSTANTS[table].values())


def test_imagenet_constants_sampled() -> None:
    table = CONSTANTS["imagenet"]
    assert table["gaussian_noise"] == (0.08, 0.12, 0.18, 0.26, 0.38)
    assert table["jpeg_compression"] == (25, 18, 15, 10, 7)
    assert table["glass_blur"][4] == (1.5, 4, 2)
    assert [zooms[-1] for zooms in table["zoom_blur"]] == [1.1, 1.15, 1.2, 1.24, 1.3]
