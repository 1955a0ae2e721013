"""JPEG by libjpeg-turbo without Pillow's detour.

Pillow decodes into four bytes a pixel and copies them out as three; simplejpeg writes the three
bytes at once. Both run the same integer transform, so the pixels are equal, bit for bit.

Decoding at a half or a quarter (the inverse transform can do that) is faster still, and not done:
measured on sharp photographs with subsampled colours, saturated pixels then come out up to four
levels off, even where six times less is left to the resize that follows.
"""

from __future__ import annotations

import threading

import numpy as np
import simplejpeg

# Pages of memory that were used before cost nothing to use again, and a decoder's thread goes
# through one large array a picture. Kept up to a size that photographs rarely exceed.
_KEPT_BYTES = 64 * 2**20
_scratch = threading.local()


def decode_jpeg(data: bytes, height: int, width: int, *, reuse: bool = False) -> np.ndarray | None:
    """RGB pixels, or None where the bytes are not quite in order: Pillow is the judge of those.

    With ``reuse`` the array lives in this thread's scratch memory, until the next call.
    """
    room = _room(height * width * 3) if reuse else None
    try:
        pixels = simplejpeg.decode_jpeg(data, "RGB", buffer=room)
    except ValueError:
        return None
    return pixels if pixels.shape == (height, width, 3) else None


def _room(size: int) -> np.ndarray | None:
    if size > _KEPT_BYTES:
        return None
    kept: np.ndarray | None = getattr(_scratch, "bytes", None)
    if kept is None or len(kept) < size:
        kept = _scratch.bytes = np.empty(size, np.uint8)
    return kept
