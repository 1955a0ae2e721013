"""A transformer whose matrix products run on bytes: a copy of a tower for frozen use on the CPU.

Weights are rounded once, every output channel by its own scale; activations are rounded anew at
every product, by the range they have there (dynamic quantisation: nothing to calibrate). Norms,
softmax, residual sums and the convolution in front stay in float32. PyTorch's own kernels are used:
they need no further package.
"""

from __future__ import annotations

import copy
import warnings

import torch
from torch import nn

from ttgcd.errors import InputError

# Processors without VNNI saturate in the inner sums of eight-bit numbers: there x gets seven. With
# mini the features' distance to float32 (1 - cosine) is 0.0002 with eight bits, 0.0008 with seven.
_SEVEN_BITS = not getattr(torch.cpu, "_is_vnni_supported", lambda: False)()


class Int8Linear(nn.Module):
    """y = x W^T + b with W in int8, one scale a row, and x rounded to uint8 on the way."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float().contiguous()
        scales = weight.abs().amax(dim=1).clamp_min(1e-12).double() / 127
        zeros = torch.zeros(len(scales), dtype=torch.int64)
        with warnings.catch_warnings():  # its successor is not in the range of torch we ask for
            warnings.filterwarnings("ignore", message="torch.quantize_per_tensor")
            rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        bias = None if linear.bias is None else linear.bias.detach().float()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self._packed = torch.ops.quantized.linear_prepack(rounded, bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.quantized.linear_dynamic(x, self._packed, reduce_range=_SEVEN_BITS)


def int8_copy(module: nn.Module) -> nn.Module:
    """`module` with all its `nn.Linear` in int8; every other parameter is shared with it."""
    if any(parameter.device.type != "cpu" for parameter in module.parameters()):
        raise InputError("precision int8 is for the CPU; on a GPU leave `precision=fp32`")
    shared = {id(p): p for p in [*module.parameters(), *module.buffers()]}
    twin = copy.deepcopy(module, shared)  # type: ignore[arg-type]
    for parent in list(twin.modules()):
        if isinstance(parent, nn.MultiheadAttention):
            continue  # reads the weights of its projection itself
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                setattr(parent, name, Int8Linear(child))
    return twin.eval()
