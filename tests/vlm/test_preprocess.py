from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoImageProcessor

from tests.vlm.checkpoints import CLIP_MEAN, CLIP_STD, write_json
from ttgcd.errors import InputError
from ttgcd.vlm.preprocess import Preprocess, from_open_clip, from_transformers

SHAPES = [(32, 32), (48, 64), (333, 224), (225, 500), (100, 37), (31, 97), (5, 3), (640, 481)]
CLIP = {
    "image_processor_type": "CLIPImageProcessor",
    "do_center_crop": True,
    "image_mean": CLIP_MEAN,
    "image_std": CLIP_STD,
    "resample": 3,
}


def photo(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Smooth shapes plus texture: what a photograph looks like to a resampling filter."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (7, 7, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))
    return np.clip(smooth + rng.normal(0, 12, smooth.shape), 0, 255).astype(np.uint8)


def reference(settings: dict, image: np.ndarray, folder) -> torch.Tensor:
    """transformers' own PIL processor, stopped before rescaling."""
    write_json(folder / "preprocessor_config.json", settings)
    processor = AutoImageProcessor.from_pretrained(folder)
    # Through PIL: a 3 pixel high array would be taken for channels-first.
    pixels = processor(
        images=Image.fromarray(image), return_tensors="pt", do_rescale=False, do_normalize=False
    )
    return pixels["pixel_values"][0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "settings",
    [
        {**CLIP, "size": 64, "crop_size": 64},
        {**CLIP, "size": {"shortest_edge": 73}, "crop_size": {"height": 64, "width": 64}},
        {**CLIP, "size": {"shortest_edge": 51}, "crop_size": {"height": 64, "width": 64}},
        {**CLIP, "size": 64, "crop_size": 64, "resample": 2},
        {
            "image_processor_type": "SiglipImageProcessor",
            "size": {"height": 64, "width": 64},
            "resample": 3,
        },
    ],
    ids=["clip", "crop of larger", "padded", "bilinear", "siglip"],
)
def test_pixels_are_those_of_transformers_processor(settings, shape, tmp_path):
    image = photo(*shape)
    expected = reference(settings, image, tmp_path).int()
    ours = from_transformers(settings)(image)
    assert ours.dtype == torch.uint8
    assert ours.shape == expected.shape == (3, 64, 64)
    difference = (ours.int() - expected).abs()
    # Each of the two passes rounds to whole levels, and PIL may take them in the other order.
    assert difference.max() <= 3
    assert (difference > 1).float().mean() < 0.002


def test_openai_settings_give_their_mean_std_and_sizes():
    preprocess = from_transformers({**CLIP, "size": 224, "crop_size": 224})
    assert (preprocess.size, preprocess.crop, preprocess.interpolation) == (224, True, "bicubic")
    assert preprocess.mean == tuple(CLIP_MEAN)
    assert preprocess.std == tuple(CLIP_STD)
    assert preprocess.rescale == 1 / 255


def test_batch_list_and_single_image_agree():
    preprocess = Preprocess(size=24)
    images = np.stack([photo(40, 30, seed) for seed in range(5)])
    batch = preprocess(images)
    assert batch.shape == (5, 3, 24, 24)
    assert batch.is_contiguous()
    assert torch.equal(batch, preprocess(list(images)))
    assert torch.equal(batch[2], preprocess(images[2]))


def test_images_of_different_sizes_make_one_batch():
    images = [photo(40, 30), photo(20, 70), photo(24, 24)]
    batch = Preprocess(size=24)(images)
    assert batch.shape == (3, 3, 24, 24)
    assert torch.equal(batch[2], torch.from_numpy(images[2]).permute(2, 0, 1))


@pytest.mark.parametrize("images", [[], np.empty((0, 40, 30, 3), np.uint8)])
def test_no_images_make_an_empty_batch(images):
    assert Preprocess(size=24)(images).shape == (0, 3, 24, 24)


def test_input_is_not_changed_and_not_shared():
    image = photo(24, 24)
    before = image.copy()
    Preprocess(size=24)(image).fill_(0)
    assert np.array_equal(image, before)


def test_needle_shaped_image_keeps_its_centre_without_being_blown_up():
    # A plain resize to the short side would make 224 x 44,800,000 pixels of this.
    image = np.zeros((1, 200_000, 3), np.uint8)
    image[:, 100_000 - 1 : 100_000 + 1] = 255
    result = Preprocess(size=224)(image)
    assert result.shape == (3, 224, 224)
    assert (result[:, :, 90:134] > 200).all()


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((8, 8, 3), np.float32),
        np.zeros((8, 8), np.uint8),
        np.zeros((8, 8, 4), np.uint8),
        np.zeros((0, 8, 3), np.uint8),
    ],
)
def test_what_is_not_an_rgb_image_is_refused(bad):
    with pytest.raises(InputError, match=r"uint8|pixels"):
        Preprocess(size=8)(bad)


@pytest.mark.parametrize(
    "change",
    [
        {"resample": 0},
        {"do_resize": False},
        {"size": {"height": 32, "width": 64}},
        {"do_center_crop": False},
        {"size": {"longest_edge": 64}},
    ],
)
def test_settings_it_cannot_follow_are_refused(change):
    with pytest.raises(InputError, match=r"preprocessor_config\.json"):
        from_transformers({**CLIP, "size": 64, "crop_size": 64, **change})


def test_open_clip_settings():
    # imageomics/bioclip keeps only this in its preprocess_cfg.
    plain = from_open_clip({"hf_hub": "imageomics/bioclip"}, 224)
    assert plain == Preprocess(224, True, tuple(CLIP_MEAN), tuple(CLIP_STD))
    squash = from_open_clip(
        {"mean": [0.5] * 3, "std": [0.5] * 3, "resize_mode": "squash", "interpolation": "bilinear"},
        378,
    )
    assert (squash.size, squash.crop, squash.interpolation) == (378, False, "bilinear")
    assert squash.mean == (0.5, 0.5, 0.5)
    with pytest.raises(InputError, match="resize_mode"):
        from_open_clip({"resize_mode": "longest"}, 224)
