"""An optimiser's memory as plain arrays, so that a state can hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

PREFIX = "optimiser/"


def optimiser_arrays(optimiser: torch.optim.Optimizer) -> dict[str, np.ndarray]:
    """The optimiser's tensors as plain arrays, copied (none for SGD without momentum)."""
    import torch

    return {
        f"{PREFIX}{index}/{key}": value.detach().cpu().numpy().copy()
        for index, entry in optimiser.state_dict()["state"].items()
        for key, value in entry.items()
        if isinstance(value, torch.Tensor)
    }


def load_optimiser_arrays(
    optimiser: torch.optim.Optimizer, arrays: Mapping[str, np.ndarray]
) -> None:
    """Put back what ``optimiser_arrays`` took out; other arrays are passed over."""
    import torch

    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, array in arrays.items():
        if name.startswith(PREFIX):
            index, key = name.removeprefix(PREFIX).split("/")
            state.setdefault(int(index), {})[key] = torch.from_numpy(np.array(array))
    if not state:
        return
    whole = optimiser.state_dict()
    whole["state"] = state
    optimiser.load_state_dict(whole)
