"""Products in bfloat16: near float32, with norms and features in float32."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from ttgcd.vlm import load_vlm


def images() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (6, 3, 32, 32), generator=generator, dtype=torch.uint8)


def test_features_stay_near_those_in_float32_and_are_float32() -> None:
    vlm = load_vlm("mini", "cpu")
    plain, fast = vlm.encoder(), vlm.encoder(precision="bf16")
    assert plain.fingerprint != fast.fingerprint
    features = fast(images())
    assert features.dtype == np.float32
    assert (plain(images()) * features).sum(axis=1).min() > 0.999
    assert not np.array_equal(plain(images()), features), "nothing ran in bfloat16"


def test_norms_read_and_give_float32() -> None:
    vlm = load_vlm("mini", "cpu")
    seen: set[torch.dtype] = set()
    for module in vlm.model.vision_model.modules():  # type: ignore[attr-defined]
        if isinstance(module, nn.LayerNorm):
            module.register_forward_hook(
                lambda _, given, result: seen.update({given[0].dtype, result.dtype})
            )
    vlm.encoder(precision="bf16")(images())
    assert seen == {torch.float32}
