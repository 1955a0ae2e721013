"""Decoding and resizing one image, against Pillow and torch on one core.

python -m benchmarks.speed.decode
"""

from __future__ import annotations

import io

import numpy as np
import torch
from PIL import Image, ImageOps

from benchmarks.speed.models import photographs
from benchmarks.speed.rows import Row, report, side_by_side
from ttgcd.streams.decode import decode
from ttgcd.vlm.preprocess import Preprocess


def by_pillow(data: bytes) -> np.ndarray:
    return np.array(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))


def main() -> None:
    torch.set_num_threads(1)
    preprocess = Preprocess(size=224)
    rows = []
    for short, count in ((375, 40), (1080, 10), (3024, 3)):
        files = photographs(count, short)
        plain, fast = side_by_side(
            lambda files=files: [preprocess(by_pillow(data)) for data in files],
            lambda files=files: [preprocess(decode(data, reuse=True)) for data in files],
            repeats=5,
        )
        equal = all(np.array_equal(by_pillow(data), decode(data)) for data in files)
        note = "pixels equal" if equal else "PIXELS DIFFER"
        note += f"; {count / fast:,.0f} images/s a core"
        what = f"JPEG, short side {short}: decode and resize"
        rows.append(Row(what, 2.0, "at least", plain / fast, note=note))
    for kind in ("PNG", "WEBP"):
        files = []
        for data in photographs(10):
            buffer = io.BytesIO()
            Image.open(io.BytesIO(data)).save(buffer, kind)
            files.append(buffer.getvalue())
        plain, fast = side_by_side(
            lambda files=files: [preprocess(by_pillow(data)) for data in files],
            lambda files=files: [preprocess(decode(data)) for data in files],
            repeats=5,
        )
        what = f"{kind}, short side 375: decode and resize"
        rows.append(Row(what, 0.95, "at least", plain / fast))
    report(rows)


if __name__ == "__main__":
    main()
