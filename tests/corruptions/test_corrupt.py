"""Each corruption against its definition, by statistics or an independent slow version."""

from __future__ import annotations

import io
import math
import threading

import numpy as np
import pytest
from PIL import Image

from ttgcd.corruptions import ALL_KINDS, CONSTANTS, SEVERITIES, constants_for, corrupt, weather
from ttgcd.corruptions import blur as blurs
from ttgcd.errors import InputError


def scene(size: int = 32, seed: int = 3) -> np.ndarray:
    """A smooth coloured scene with an edge: blurs and colours both have something to change."""
    ys, xs = np.mgrid[0:size, 0:size] / size
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(1, 3, 3)
    image = np.stack([np.sin(a * 3 * xs), np.cos(b * 3 * ys), np.sin(c * 3 * (xs + ys))], 2) * 70
    image += 110 + 60 * ((xs - 0.5) ** 2 + (ys - 0.5) ** 2 < 0.08)[:, :, None]
    return np.clip(image, 0, 255).astype(np.uint8)


def grey(value: int, size: int = 96) -> np.ndarray:
    return np.full((size, size, 3), value, np.uint8)


def distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a.astype(float) - b.astype(float)).mean())


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("size", [32, 48, 128])
def test_shape_type_and_input_untouched(kind: str, size: int) -> None:
    image = scene(size)
    before = image.copy()
    for severity in (1, 5):
        made = corrupt(image, kind, severity, 0)
        assert made.shape == image.shape and made.dtype == np.uint8
        assert distance(made, image) > 0
    assert np.array_equal(image, before)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_not_square(kind: str) -> None:
    image = scene(128)[:100]
    for table in ("cifar", "imagenet"):
        assert corrupt(image, kind, 5, 1, table).shape == (100, 128, 3)


RANDOM = [k for k in ALL_KINDS if k.endswith(("noise", "snow", "frost", "fog", "transform"))]


@pytest.mark.parametrize("kind", [*RANDOM, "glass_blur", "motion_blur", "spatter"])
def test_seed_decides(kind: str) -> None:
    image = scene()
    assert np.array_equal(corrupt(image, kind, 5, (7, 1)), corrupt(image, kind, 5, (7, 1)))
    assert not np.array_equal(corrupt(image, kind, 5, (7, 1)), corrupt(image, kind, 5, (7, 2)))
    assert np.array_equal(corrupt(image, kind, 5, 7), corrupt(image, kind, 5, [7]))


def test_global_generator_is_neither_used_nor_moved() -> None:
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    first = [corrupt(scene(), kind, 3, 0) for kind in ALL_KINDS]
    assert np.array_equal(before, np.random.get_state()[1])
    np.random.seed(1)
    assert all(np.array_equal(a, corrupt(scene(), k, 3, 0)) for a, k in zip(first, ALL_KINDS))


def test_threads_do_not_disturb_each_other() -> None:
    images = [scene(seed=i) for i in range(6)]
    jobs = [(i, kind) for i in range(len(images)) for kind in ALL_KINDS]
    alone = {(i, kind): corrupt(images[i], kind, 5, (0, i)) for i, kind in jobs}
    together: dict[tuple[int, str], np.ndarray] = {}

    def work(part: list[tuple[int, str]]) -> None:
        for i, kind in part:
            together[i, kind] = corrupt(images[i], kind, 5, (0, i))

    threads = [threading.Thread(target=work, args=(jobs[::-1][n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(alone[job], together[job]) for job in jobs)


# Elastic severities trade displacement for affine jitter, glass blur sigma for passes, frost
# brightness of image for frost, saturate and spatter change their nature half way.
MONOTONE = [
    kind
    for kind in ALL_KINDS
    if kind not in ("elastic_transform", "glass_blur", "frost", "saturate", "spatter")
]


@pytest.mark.parametrize("kind", MONOTONE)
def test_severity_grows(kind: str) -> None:
    # With fine texture: on a smooth scene, pixelating to 30 and to 28 pixels differ little.
    texture = np.random.default_rng(0).integers(-25, 26, (12, 32, 32, 3))
    images = [np.clip(scene(seed=i) + texture[i], 0, 255).astype(np.uint8) for i in range(12)]
    means = [
        np.mean([distance(corrupt(x, kind, s, i), x) for i, x in enumerate(images)])
        for s in SEVERITIES
    ]
    assert means == sorted(means) and means[-1] > 1.1 * means[0]


@pytest.mark.parametrize("table", ["cifar", "imagenet"])
@pytest.mark.parametrize("severity", [1, 3])
def test_gaussian_noise_has_its_deviation(table: str, severity: int) -> None:
    made = corrupt(grey(128, 200), "gaussian_noise", severity, 0, table) / 255
    expected = CONSTANTS[table]["gaussian_noise"][severity - 1]
    assert made.std() == pytest.approx(expected, rel=0.02)
    assert made.mean() == pytest.approx(127.5 / 255, abs=0.003)
    channels = np.corrcoef(made.reshape(-1, 3).T)
    assert np.abs(channels - np.eye(3)).max() < 0.03


def test_shot_noise_variance_is_the_mean_over_the_count() -> None:
    made = corrupt(grey(128, 200), "shot_noise", 5, 0, "cifar") / 255
    assert made.std() == pytest.approx(math.sqrt(128 / 255 / 50), rel=0.02)
    assert set(np.unique(corrupt(grey(0), "shot_noise", 5, 0))) == {0}


def test_speckle_noise_grows_with_the_value() -> None:
    for value in (50, 150):
        made = corrupt(grey(value, 200), "speckle_noise", 3, 0, "cifar") / 255
        assert made.std() == pytest.approx(0.12 * value / 255, rel=0.03)


def test_impulse_noise_share_half_salt_half_pepper() -> None:
    made = corrupt(grey(100, 200), "impulse_noise", 5, 0, "cifar")
    assert (made == 255).mean() == pytest.approx(0.035, rel=0.05)
    assert (made == 0).mean() == pytest.approx(0.035, rel=0.05)
    assert ((made == 0) | (made == 100) | (made == 255)).all()


def slow_convolution(image: np.ndarray, kernel: np.ndarray, pad: str) -> np.ndarray:
    half = len(kernel) // 2
    padded = np.pad(image / 255.0, ((half, half), (half, half), (0, 0)), mode=pad)
    out = np.zeros(image.shape)
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            window = padded[y : y + len(kernel), x : x + len(kernel)]
            out[y, x] = (window * kernel[:, :, None]).sum(axis=(0, 1))
    return out


def close(made: np.ndarray, exact: np.ndarray) -> bool:
    """Equal up to truncation: one level at most, and on the lower side."""
    gap = np.clip(exact, 0, 1) * 255 - made
    return bool((gap > -1e-5).all() and (gap < 1 + 1e-5).all())


def test_gaussian_blur_is_a_convolution() -> None:
    line = np.arange(-4, 5)
    taps = np.exp(-(line**2) / 2.0)
    kernel = np.outer(taps, taps) / taps.sum() ** 2
    made = corrupt(scene(), "gaussian_blur", 5, 0)
    assert close(made, slow_convolution(scene(), kernel, "edge"))


@pytest.mark.parametrize(("table", "severity"), [("cifar", 1), ("cifar", 5), ("imagenet", 2)])
def test_defocus_blur_is_a_convolution_with_a_disk(table: str, severity: int) -> None:
    radius, sigma = CONSTANTS[table]["defocus_blur"][severity - 1]
    line = np.arange(-8, 9)
    disk = np.array([[float(x * x + y * y <= radius**2) for x in line] for y in line])
    rim = np.exp(-(np.arange(-1, 2) ** 2) / (2 * sigma**2))
    rim = np.outer(rim, rim) / rim.sum() ** 2
    padded = np.pad(disk / disk.sum(), 1)
    kernel = sum(
        rim[dy, dx] * padded[dy : dy + 17, dx : dx + 17] for dy in range(3) for dx in range(3)
    )
    made = corrupt(scene(), "defocus_blur", severity, 0, table)
    assert close(made, slow_convolution(scene(), kernel, "reflect"))


def test_motion_blur_by_following_the_streak() -> None:
    image = scene() / 255.0
    angle = 30.0
    made = blurs.streak(image, 9, 2.5, angle)
    weights = [math.exp(-(i**2) / (2 * 2.5**2)) for i in range(19)]
    for y, x in [(0, 0), (16, 16), (31, 31), (5, 29)]:
        value = np.zeros(3)
        for i, weight in enumerate(weights):
            dx = math.ceil(i * math.cos(math.radians(angle)) - 0.5)
            dy = math.ceil(i * math.sin(math.radians(angle)) - 0.5)
            value += weight * image[min(31, y + dy), min(31, x + dx)]
        assert made[y, x] == pytest.approx(value / sum(weights))


@pytest.mark.parametrize("factor", [1.0, 1.07, 1.25, 2.25])
@pytest.mark.parametrize("size", [32, 45])
def test_zoom_keeps_the_centre(factor: float, size: int) -> None:
    from scipy import ndimage

    image = scene(size)[:, :, 0] / 255.0
    crop = math.ceil(size / factor)
    first = (size - crop) // 2
    big = ndimage.zoom(image[first : first + crop, first : first + crop], factor, order=1)
    trim = (len(big) - size) // 2
    expected = big[trim : trim + size, trim : trim + size]
    assert np.allclose(blurs.zoom_in(image, factor), expected)


def glass_by_loop(x: np.ndarray, shift: int, moves: np.ndarray) -> np.ndarray:
    """The published loop, with the copy that its swap of views amounts to."""
    x = x.copy()
    height, width = x.shape[:2]
    for h in range(height - shift, shift, -1):
        for w in range(width - shift, shift, -1):
            dy, dx = moves[:, h - shift - 1, w - shift - 1]
            x[h, w], x[h + dy, w + dx] = x[h + dy, w + dx], x[h, w]
    return x


@pytest.mark.parametrize("shift", [1, 2, 4])
def test_glass_blur_equals_the_loop_over_pixels(shift: int) -> None:
    image = np.random.default_rng(0).integers(0, 256, (40, 33, 3))
    side = (40 - 2 * shift, 33 - 2 * shift)
    moves = np.random.default_rng(5).integers(-shift, shift, size=(2, *side))
    made = blurs._take_from_neighbours(image, shift, np.random.default_rng(5))
    assert np.array_equal(made, glass_by_loop(image, shift, moves))


def test_jpeg_is_pillows() -> None:
    encoded = io.BytesIO()
    Image.fromarray(scene()).save(encoded, "JPEG", quality=40)
    expected = np.asarray(Image.open(encoded))
    assert np.array_equal(corrupt(scene(), "jpeg_compression", 5, 0), expected)


def test_pixelate_is_pillows_box() -> None:
    small = Image.fromarray(scene()).resize((20, 20), Image.Resampling.BOX)
    expected = np.asarray(small.resize((32, 32), Image.Resampling.BOX))
    assert np.array_equal(corrupt(scene(), "pixelate", 5, 0), expected)


def test_contrast_keeps_the_mean_of_each_channel() -> None:
    image = scene()
    exact = (image / 255 - image.mean((0, 1)) / 255) * 0.15 + image.mean((0, 1)) / 255
    assert close(corrupt(image, "contrast", 5, 0), exact)


def hsv(pixel: np.ndarray, change: str, a: float, b: float) -> tuple[float, float, float]:
    import colorsys

    h, s, v = colorsys.rgb_to_hsv(*(pixel / 255.0))
    if change == "value":
        v = min(1.0, v + a)
    else:
        s = min(1.0, max(0.0, s * a + b))
    return colorsys.hsv_to_rgb(h, s, v)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_brightness_and_saturate_in_hsv(severity: int) -> None:
    image = scene()[::4, ::4].copy()
    image[0, 0], image[0, 1], image[1, 1] = 0, 255, 90
    bright = corrupt(image, "brightness", severity, 0)
    rich = corrupt(image, "saturate", severity, 0)
    c, (a, b) = (CONSTANTS["cifar"][k][severity - 1] for k in ("brightness", "saturate"))
    for y in range(8):
        for x in range(8):
            assert close(bright[y, x], np.array(hsv(image[y, x], "value", c, 0)))
            assert close(rich[y, x], np.array(hsv(image[y, x], "saturation", a, b)))


def test_fog_keeps_the_maximum_and_is_smooth() -> None:
    plasma = weather._plasma(32, 3.0, np.random.default_rng(0))
    assert plasma.shape == (32, 32) and plasma.min() == 0 and plasma.max() == 1
    rough = weather._plasma(32, 1.1, np.random.default_rng(0))
    assert np.abs(np.diff(plasma)).mean() < 0.5 * np.abs(np.diff(rough)).mean()
    image = scene()
    assert corrupt(image, "fog", 5, 0).max() <= image.max()


def test_snow_and_frost_brighten() -> None:
    assert corrupt(scene(), "snow", 5, 0).mean() > scene().mean() + 10
    assert corrupt(scene(), "frost", 2, 0).mean() > scene().mean() + 10


def test_elastic_keeps_a_flat_image_and_moves_an_edge() -> None:
    assert np.array_equal(corrupt(grey(77, 32), "elastic_transform", 5, 0), grey(77, 32))
    image = scene()
    made = corrupt(image, "elastic_transform", 5, 0)
    assert abs(made.mean() - image.mean()) < 6 and distance(made, image) > 2


def test_spatter_is_water_then_mud() -> None:
    base = grey(120, 32)
    water = np.stack([corrupt(base, "spatter", 3, i) for i in range(5)]).astype(int)
    mud = np.stack([corrupt(base, "spatter", 5, i) for i in range(5)]).astype(int)
    assert (water >= 120).all() and water.max() > 150
    assert (mud <= 120).all() and mud.min() < 60
    assert (mud[..., 0] >= mud[..., 2]).all()


def test_auto_chooses_by_size() -> None:
    assert constants_for(32, 32) == constants_for(64, 48) == "cifar"
    assert constants_for(96, 96) == constants_for(224, 300) == "imagenet"
    small, large = scene(48), scene(224)
    for image, table in ((small, "cifar"), (large, "imagenet")):
        auto = corrupt(image, "gaussian_noise", 5, 0)
        assert np.array_equal(auto, corrupt(image, "gaussian_noise", 5, 0, table))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((scene(), "rain", 5, 0), "rain"),
        ((scene(), "fog", 0, 0), "severity"),
        ((scene(), "fog", 6, 0), "severity"),
        ((scene() / 255.0, "fog", 5, 0), "uint8"),
        ((scene()[:, :, 0], "fog", 5, 0), "RGB"),
        ((scene()[:4, :4], "fog", 5, 0), "8 pixels"),
        ((scene(), "fog", 5, -1), "seed"),
        ((scene(), "fog", 5, []), "seed"),
        ((scene(), "fog", 5, 0, "coco"), "coco"),
    ],
)
def test_bad_input(arguments: tuple, word: str) -> None:
    with pytest.raises(InputError, match=word):
        corrupt(*arguments)


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("value", [0, 255])
def test_black_and_white_survive(kind: str, value: int) -> None:
    for severity in SEVERITIES:
        with np.errstate(all="raise"):
            made = corrupt(grey(value, 32), kind, severity, 0)
        assert np.isfinite(made).all()
