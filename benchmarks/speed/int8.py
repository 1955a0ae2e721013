"""The int8 encoder against float32: speed with ViT-B/16's shape, answers with mini on IconShift.

python -m benchmarks.speed.int8
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch

from benchmarks.speed.models import vit_b16
from benchmarks.speed.rows import Row, report, side_by_side
from ttgcd.vlm import load_vlm


def speed(images: int = 32) -> Row:
    with tempfile.TemporaryDirectory() as name:
        vlm = load_vlm(str(vit_b16(Path(name))))
    generator = torch.Generator().manual_seed(0)
    batch = torch.randint(0, 256, (images, 3, 224, 224), generator=generator, dtype=torch.uint8)
    plain, fast = vlm.encoder(), vlm.encoder(precision="int8")
    eager, quick = side_by_side(lambda: plain(batch), lambda: fast(batch))
    return Row("int8 encoder against fp32 (ViT-B/16 shape)", 1.4, "at least", eager / quick,
               note=f"{images / quick:.1f} images/s")  # fmt: skip


def main() -> None:
    from benchmarks.speed.answers import METHODS, lost_by_int8

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    seeds = parser.parse_args().seeds
    rows = [speed()]
    for method in METHODS:
        lost = lost_by_int8(method, seeds)
        note = f"{seeds} seeds, standard error {lost.error:.2f}; worst domain {lost.worst:+.2f}"
        rows.append(
            Row(f"All lost by int8 with mini, mean over IconShift's domains, {method}", 0.3,
                "at most", lost.mean, " points", note)
        )  # fmt: skip
    report(rows)


if __name__ == "__main__":
    main()
