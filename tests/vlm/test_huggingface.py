from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F
from transformers import (
    AutoImageProcessor,
    CLIPConfig,
    CLIPModel,
    CLIPTokenizer,
    PreTrainedTokenizerFast,
    SiglipModel,
)

from tests.vlm.checkpoints import write_clip, write_json, write_siglip
from ttgcd.errors import InputError
from ttgcd.vlm import load_vlm
from ttgcd.vlm.base import NonFiniteError, check_finite, layer_norms

TEXTS = ["a photo of a cat.", "A Photo of two  dogs, at night!", "x"]
STEM = {"type": "residual-conv", "channels": [8, 8, 8], "blocks": [1, 0, 1], "width": 32}
B16 = {
    "projection_dim": 512,
    "vision_config": {"patch_size": 16},
    "text_config": {},
}
L14 = {
    "projection_dim": 768,
    "vision_config": {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "patch_size": 14,
    },
    "text_config": {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12},
}


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory):
    return write_clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="module")
def siglip_folder(tmp_path_factory):
    return write_siglip(tmp_path_factory.mktemp("siglip"))


@pytest.fixture
def vlm(clip_folder):
    return load_vlm(str(clip_folder), device="cpu")


def images(count: int = 3, height: int = 32, width: int = 32) -> np.ndarray:
    generator = np.random.default_rng(1)
    return generator.integers(0, 256, (count, height, width, 3), dtype=np.uint8)


def pooled(output):
    return output if isinstance(output, torch.Tensor) else output.pooler_output


@pytest.mark.parametrize("kind", ["clip", "siglip", "stem"])
def test_encoding_in_two_parts_is_encoding_in_one(kind, clip_folder, siglip_folder):
    name = {"clip": str(clip_folder), "siglip": str(siglip_folder), "stem": "mini"}[kind]
    vlm = load_vlm(name, device="cpu").trainable()
    batch = vlm.preprocess(images(5))
    whole = vlm.encode_images(batch)
    embedded = vlm.embed_images(batch)
    assert not embedded.requires_grad  # no trainable norm lies before it
    torch.testing.assert_close(vlm.encode_embedded(embedded), whole, atol=1e-6, rtol=0)
    torch.testing.assert_close(vlm.encode_images(batch), whole, atol=0, rtol=0)
    parameters = list(vlm.norm_parameters("image").values())
    for encode, given in ((vlm.encode_images, batch), (vlm.encode_embedded, embedded)):
        vlm.model.zero_grad()
        encode(given)[:, 0].sum().backward()
        gradients = [p.grad.clone() for p in parameters if p.grad is not None]
        assert gradients
        if encode == vlm.encode_images:
            expected = gradients
    for one, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("activation", ["quick_gelu", "gelu"])
def test_clip_features_are_those_of_transformers_processor_and_model(activation, tmp_path):
    folder = write_clip(tmp_path, activation=activation)
    ours = load_vlm(str(folder))
    model = CLIPModel.from_pretrained(folder).eval()
    processor = AutoImageProcessor.from_pretrained(folder)
    tokenizer = CLIPTokenizer.from_pretrained(folder)
    with torch.no_grad():
        expected = pooled(
            model.get_image_features(**processor(images=list(images()), return_tensors="pt"))
        )
        # 32 px images need no resizing: the pixels are identical.
        assert torch.allclose(
            ours.encode_images(ours.preprocess(images()), normalize=False), expected, atol=1e-5
        )
        tokens = tokenizer(TEXTS, padding="max_length", max_length=77, return_tensors="pt")
        expected = pooled(model.get_text_features(**tokens))
        assert torch.allclose(ours.encode_texts(TEXTS, normalize=False), expected, atol=1e-5)
    assert ours.dim == 16
    assert ours.logit_scale == pytest.approx(float(np.exp(4.6052)))


def test_the_activation_matters_in_these_checkpoints(tmp_path):
    quick = load_vlm(str(write_clip(tmp_path / "quick", activation="quick_gelu")))
    exact = load_vlm(str(write_clip(tmp_path / "exact", activation="gelu")))
    batch = quick.preprocess(images())
    assert (quick.encode_images(batch) - exact.encode_images(batch)).abs().max() > 1e-3


def test_siglip_features_are_those_of_transformers_processor_and_model(siglip_folder):
    ours = load_vlm(str(siglip_folder))
    model = SiglipModel.from_pretrained(siglip_folder).eval()
    processor = AutoImageProcessor.from_pretrained(siglip_folder)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(siglip_folder)
    with torch.no_grad():
        expected = pooled(
            model.get_image_features(**processor(images=list(images()), return_tensors="pt"))
        )
        assert torch.allclose(
            ours.encode_images(ours.preprocess(images()), normalize=False), expected, atol=1e-5
        )
        # As the model card says: full length, no attention mask.
        tokens = tokenizer(
            TEXTS, padding="max_length", max_length=24, truncation=True, return_tensors="pt"
        )
        expected = pooled(model.get_text_features(input_ids=tokens["input_ids"]))
        assert torch.allclose(ours.encode_texts(TEXTS, normalize=False), expected, atol=1e-5)
        # A short text alone is padded to the full length too.
        assert torch.allclose(ours.encode_texts(["x"], normalize=False), expected[2:], atol=1e-5)
    assert ours.logit_scale == pytest.approx(float(np.exp(4.7)))


@pytest.mark.parametrize("write", [write_clip, write_siglip])
def test_features_of_resized_photos_stay_near_transformers(write, tmp_path):
    folder = write(tmp_path)
    ours = load_vlm(str(folder))
    kind = CLIPModel if write is write_clip else SiglipModel
    model = kind.from_pretrained(folder).eval()
    processor = AutoImageProcessor.from_pretrained(folder)
    batch = images(6, 90, 70)
    with torch.no_grad():
        expected = F.normalize(
            pooled(model.get_image_features(**processor(images=list(batch), return_tensors="pt"))),
            dim=-1,
        )
        features = ours.encode_images(ours.preprocess(batch))
    assert (features * expected).sum(dim=1).min() > 0.9995


def test_a_stem_announced_in_the_config_takes_the_place_of_the_patch_convolution(tmp_path):
    folder = write_clip(tmp_path, stem=STEM)
    ours = load_vlm(str(folder))
    stem = ours.model.vision_model.embeddings.patch_embedding
    stored = load_file(folder / "model.safetensors")
    prefix = "vision_model.embeddings.patch_embedding."
    for name, value in stem.state_dict().items():
        assert torch.equal(value, stored[prefix + name])
    assert ours.encode_images(ours.preprocess(images())).shape == (3, 16)
    # The stem holds no LayerNorm: the count is that of the plain tower.
    assert sum(p.numel() for p in ours.trainable().norm_parameters().values()) == 6 * 2 * 32


def test_features_are_unit_rows_in_float32(vlm):
    features = vlm.encode_images(vlm.preprocess(images()))
    assert features.dtype == torch.float32
    assert torch.allclose(features.norm(dim=1), torch.ones(3), atol=1e-6)
    assert torch.allclose(vlm.encode_texts(TEXTS).norm(dim=1), torch.ones(3), atol=1e-6)


def test_a_text_has_the_same_features_alone_and_beside_longer_ones(vlm):
    with torch.no_grad():
        assert torch.allclose(vlm.encode_texts(TEXTS)[2], vlm.encode_texts(["x"])[0], atol=1e-5)


def test_overlong_texts_are_cut(vlm):
    assert vlm.encode_texts(["word " * 200]).isfinite().all()


def test_empty_batches(vlm):
    assert vlm.encode_images(vlm.preprocess([])).shape == (0, 16)
    assert vlm.encode_texts([]).shape == (0, 16)


@pytest.mark.parametrize(
    "bad", [torch.zeros(2, 3, 32, 32), torch.zeros(2, 3, 16, 16, dtype=torch.uint8)]
)
def test_images_that_did_not_pass_preprocess_are_refused(vlm, bad):
    with pytest.raises(InputError, match="uint8"):
        vlm.encode_images(bad)


def test_half_precision_checkpoints_run_in_float32(clip_folder, tmp_path, vlm):
    folder = write_clip(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    save_file({k: v.half() for k, v in tensors.items()}, folder / "model.safetensors")
    half = load_vlm(str(folder))
    assert {p.dtype for p in half.model.parameters()} == {torch.float32}
    batch = vlm.preprocess(images())
    assert torch.allclose(half.encode_images(batch), vlm.encode_images(batch), atol=1e-2)


# Norm parameters


@pytest.mark.parametrize(
    ("settings", "image", "text"),
    [(B16, 39_936, 25_600), (L14, 102_400, 38_400)],
    ids=["openai/clip-vit-base-patch16", "openai/clip-vit-large-patch14"],
)
def test_norm_counts_of_the_real_configurations(settings, image, text):
    with torch.device("meta"):
        model = CLIPModel(CLIPConfig(**settings))
    assert sum(p.numel() for p in layer_norms(model.vision_model).values()) == image
    assert sum(p.numel() for p in layer_norms(model.text_model).values()) == text


def test_norm_names_and_order_are_stable(vlm):
    vlm = vlm.trainable()
    assert list(vlm.norm_parameters("image"))[:4] == [
        "pre_layrnorm.weight",
        "pre_layrnorm.bias",
        "encoder.layers.0.layer_norm1.weight",
        "encoder.layers.0.layer_norm1.bias",
    ]
    assert list(vlm.norm_parameters("image"))[-1] == "post_layernorm.bias"
    assert list(vlm.norm_parameters("text"))[-1] == "final_layer_norm.bias"


@pytest.mark.parametrize("kind", ["clip_folder", "siglip_folder"])
def test_only_norms_are_trainable_and_every_norm_gets_a_gradient(kind, request):
    model = load_vlm(str(request.getfixturevalue(kind))).trainable()
    norms = {**model.norm_parameters("image"), **model.norm_parameters("text")}
    trainable = {id(p) for p in model.model.parameters() if p.requires_grad}
    assert trainable == {
        id(p) for t in ("image", "text") for p in model.norm_parameters(t).values()
    }
    features = model.encode_images(model.preprocess(images()))
    (features @ model.encode_texts(TEXTS).T).square().sum().backward()
    for name, parameter in norms.items():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_no_graph_without_gradients(vlm):
    with torch.no_grad():
        assert not vlm.encode_images(vlm.preprocess(images())).requires_grad
    with torch.inference_mode():
        assert vlm.encode_images(vlm.preprocess(images())).is_inference()


def test_reset_restores_bit_for_bit(vlm):
    vlm = vlm.trainable()
    before = {tower: vlm.norm_arrays(tower) for tower in ("image", "text")}
    batch = vlm.preprocess(images())
    features = vlm.encode_images(batch).detach()
    parameters = [p for tower in ("image", "text") for p in vlm.norm_parameters(tower).values()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        (vlm.encode_images(batch) @ vlm.encode_texts(TEXTS).T).sum().backward()
        optimizer.step()
    assert not torch.allclose(vlm.encode_images(batch), features, atol=1e-3)
    vlm.reset()
    for tower, arrays in before.items():
        for name, array in vlm.norm_arrays(tower).items():
            assert array.tobytes() == arrays[name].tobytes()
    assert torch.equal(vlm.encode_images(batch), features)
    assert all(p.grad is None for p in parameters)


def test_norms_round_trip_through_arrays(vlm, clip_folder):
    vlm = vlm.trainable()
    with torch.no_grad():
        for parameter in vlm.norm_parameters().values():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    other = load_vlm(str(clip_folder)).trainable()
    other.load_norms(vlm.norm_arrays())
    batch = vlm.preprocess(images())
    assert torch.equal(vlm.encode_images(batch), other.encode_images(batch))
    assert all(p.requires_grad for p in other.norm_parameters().values())


def test_norms_of_another_model_are_refused_and_nothing_is_changed(vlm):
    vlm = vlm.trainable()
    before = vlm.norm_arrays()
    missing = dict(list(before.items())[1:])
    with pytest.raises(InputError, match=r"pre_layrnorm\.weight"):
        vlm.load_norms(missing)
    wide = {name: np.zeros(7, np.float32) for name in before}
    with pytest.raises(InputError, match="shape"):
        vlm.load_norms(wide)
    assert all(np.array_equal(before[k], v) for k, v in vlm.norm_arrays().items())


# Encoders and copies over shared weights


@pytest.mark.parametrize("kind", ["clip_folder", "siglip_folder"])
def test_a_copy_shares_every_weight_but_the_norms(kind, request):
    vlm = load_vlm(str(request.getfixturevalue(kind)))
    model = vlm.trainable()
    own = {id(p) for t in ("image", "text") for p in model.norm_parameters(t).values()}
    shared = {p.data_ptr() for p in vlm.model.parameters()}
    for parameter in model.model.parameters():
        assert (parameter.data_ptr() in shared) == (id(parameter) not in own)
    assert not any(p.requires_grad for p in vlm.model.parameters())


def test_encoders_with_norms_of_their_own_live_side_by_side(vlm):
    batch = vlm.preprocess(images())
    norms = {k: a + 0.1 for k, a in vlm.trainable().norm_arrays().items()}
    plain, other = vlm.encoder(), vlm.encoder(norms)
    before = plain(batch)
    changed = other(batch)
    assert np.array_equal(plain(batch), before) and not np.allclose(changed, before, atol=1e-3)
    assert np.array_equal(vlm.encoder(norms)(batch), changed)
    assert np.array_equal(vlm.encoder(vlm.trainable().norm_arrays())(batch), before)


def test_the_fingerprint_of_an_encoder_covers_its_norms(vlm):
    norms = vlm.trainable().norm_arrays()
    one, same = vlm.encoder(norms).fingerprint, vlm.encoder(dict(norms)).fingerprint
    name = next(iter(norms))
    other = vlm.encoder({**norms, name: norms[name] + 1e-3}).fingerprint
    assert one == same and len({one, other, vlm.encoder().fingerprint}) == 3


def test_an_encoder_gives_the_same_features_from_many_threads(vlm):
    from concurrent.futures import ThreadPoolExecutor

    batch = vlm.preprocess(images(6))
    norms = [{k: a + 0.01 * i for k, a in vlm.trainable().norm_arrays().items()} for i in range(4)]
    encoders = [vlm.encoder(n) for n in norms]
    alone = [encode(batch) for encode in encoders]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for found, expected in zip(pool.map(lambda e: e(batch), encoders), alone):
                assert np.array_equal(found, expected)


def test_an_unknown_precision_is_refused(vlm):
    with pytest.raises(InputError, match="precision"):
        vlm.encoder(precision="int1")


# Broken checkpoints


def test_nan_weights_are_caught_where_they_arise(tmp_path):
    folder = write_clip(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    tensors["visual_projection.weight"][0, 0] = float("nan")
    save_file(tensors, folder / "model.safetensors")
    broken = load_vlm(str(folder))
    with pytest.raises(NonFiniteError, match="image features: 3 of 3"):
        broken.encode_images(broken.preprocess(images()))


def test_check_finite_says_what_and_which_row():
    features = torch.ones(4, 2)
    assert check_finite(features, "batch 7") is features
    features[2, 1] = float("inf")
    with pytest.raises(NonFiniteError, match=r"batch 7: 1 of 4 .*row 2"):
        check_finite(features, "batch 7")


def test_a_missing_weight_is_an_error_and_not_a_random_one(tmp_path):
    folder = write_clip(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    del tensors["vision_model.post_layernorm.weight"]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(InputError, match=r"missing.*vision_model\.post_layernorm\.weight"):
        load_vlm(str(folder))


def test_weights_of_another_shape_than_the_config(tmp_path):
    folder = write_clip(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["projection_dim"] = 8
    write_json(folder / "config.json", config)
    with pytest.raises(InputError, match="shape"):
        load_vlm(str(folder))


def test_preprocessing_of_another_size_than_the_encoder(tmp_path):
    folder = write_clip(tmp_path)
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    write_json(folder / "preprocessor_config.json", {**settings, "size": 64, "crop_size": 64})
    with pytest.raises(InputError, match="side 64"):
        load_vlm(str(folder))


def test_processor_config_of_transformers_5_is_read(tmp_path):
    folder = write_clip(tmp_path)
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").unlink()
    write_json(folder / "processor_config.json", {"image_processor": settings})
    assert load_vlm(str(folder)).preprocess.size == 32


@pytest.mark.parametrize("change", [{"model_type": "blip"}, {"model_type": None}])
def test_other_families_are_refused(tmp_path, change):
    folder = write_clip(tmp_path)
    write_json(folder / "config.json", change)
    with pytest.raises(InputError, match="model_type"):
        load_vlm(str(folder))


def test_no_code_of_a_checkpoint_runs(tmp_path):
    folder = write_clip(tmp_path)
    (folder / "evil.py").write_text("raise SystemExit('code of the checkpoint ran')\n")
    for name in ("config.json", "tokenizer_config.json", "preprocessor_config.json"):
        content = json.loads((folder / name).read_text())
        content["auto_map"] = {
            "AutoModel": "evil.Model",
            "AutoConfig": "evil.Config",
            "AutoTokenizer": ["evil.Tokenizer", "evil.Tokenizer"],
            "AutoImageProcessor": "evil.Processor",
        }
        write_json(folder / name, content)
    assert load_vlm(str(folder)).dim == 16


@pytest.mark.parametrize("device", ["nonsense", "cuda:99"])
def test_a_device_that_is_not_there(clip_folder, device):
    with pytest.raises(InputError, match="device=cpu"):
        load_vlm(str(clip_folder), device=device)
