"""What something needs to go on: plain arrays and JSON values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class State(NamedTuple):
    """Arrays by name, and values that JSON can hold.

    ``values["seen"]`` of a method's state is the stream index at which reading goes on.
    """

    arrays: dict[str, np.ndarray]
    values: dict[str, Any]
