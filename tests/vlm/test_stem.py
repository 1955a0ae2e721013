from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from ttgcd.errors import InputError
from ttgcd.vlm.stem import build_stem

STEM = {"type": "residual-conv", "channels": [8, 16, 24], "blocks": [0, 1, 2], "width": 32}


def test_gives_one_token_for_every_patch():
    tokens = build_stem(STEM)(torch.randn(2, 3, 48, 48))
    assert tokens.shape == (2, 32, 6, 6)


def test_weight_tells_the_dtype_that_clip_embeddings_read():
    assert build_stem(STEM).to(torch.float64).weight.dtype == torch.float64


def test_is_strided_convolutions_residual_blocks_and_a_projection():
    torch.manual_seed(0)
    stem = build_stem({"type": "residual-conv", "channels": [4], "blocks": [1], "width": 5})
    w = dict(stem.named_parameters())
    x = torch.randn(1, 3, 8, 8)
    h = F.relu(F.conv2d(x, w["layers.0.weight"], w["layers.0.bias"], stride=2, padding=1))
    inner = F.relu(F.conv2d(h, w["layers.2.conv1.weight"], w["layers.2.conv1.bias"], padding=1))
    inner = F.conv2d(inner, w["layers.2.conv2.weight"], w["layers.2.conv2.bias"], padding=1)
    expected = F.conv2d(F.relu(h + inner), w["projection.weight"], w["projection.bias"])
    torch.testing.assert_close(stem(x), expected)


def test_unknown_type_is_named():
    with pytest.raises(InputError, match="swirl"):
        build_stem({**STEM, "type": "swirl"})


@pytest.mark.parametrize(("channels", "blocks"), [([], []), ([8, 16], [1])])
def test_stages_must_be_complete(channels, blocks):
    with pytest.raises(InputError, match="blocks"):
        build_stem({**STEM, "channels": channels, "blocks": blocks})
