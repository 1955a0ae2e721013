"""The features of the first samples of a stream, as the pretrained encoder sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ttgcd.errors import InputError
from ttgcd.streams.stream import Stream

if TYPE_CHECKING:
    from ttgcd.vlm.encoder import Encoder


def first_features(
    stream: Stream,
    encoder: Encoder | None,
    wanted: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> np.ndarray:
    """At most ``wanted`` of them (all by default); ``encoder`` is None for embeddings. ``progress``
    hears of the phase "encode"."""
    parts: list[np.ndarray] = []
    count = 0
    with stream:
        for batch in stream:
            if batch.features is not None:
                parts.append(batch.features)
            else:
                assert encoder is not None and batch.images is not None
                parts.append(encoder(batch.images))
            count += len(batch)
            if progress is not None:
                most = stream.total if wanted is None else min(wanted, stream.total)
                progress("encode", min(count, most), most)
            if wanted is not None and count >= wanted:
                break
    if not parts:
        raise InputError("no readable sample in the input")
    return np.concatenate(parts)[:wanted]
