"""The default on photographs, everything included, against encoding them once.

    python -m benchmarks.speed.whole [--images 128]

Two thousand photographs would take an hour here: buffer and stream are scaled down together, so
that the buffer is as large a part of the stream as it would be there.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
from pathlib import Path

import torch

from benchmarks.speed.models import NAMES, vit_b16, write_photographs
from benchmarks.speed.rows import Row, report, seconds
from ttgcd.cli import main as command
from ttgcd.streams.decode import decode
from ttgcd.vlm import load_vlm

PHOTOGRAPHS, BUFFER = 2000, 1024


def ttgcd(words: list[str]) -> None:
    """A run that was stopped or refused must not pass for a fast one."""
    if command(words) != 0:
        raise SystemExit("the run did not finish: nothing was measured")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=128)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = vit_b16(folder / "model")
        source = write_photographs(folder / "photographs", args.images)
        vlm = load_vlm(str(model))
        files = sorted(source.iterdir())
        tensors = torch.stack([vlm.preprocess(decode(file.read_bytes())) for file in files])
        encoder = vlm.encoder()
        encoder(tensors[:8])
        words = ["discover", str(source), "--model", str(model), "--known", NAMES, "--novel", "10",
                 "--warmup", str(args.images * BUFFER // PHOTOGRAPHS), "--quiet",
                 "--out", str(folder / "out")]  # fmt: skip
        once = seconds(lambda: encoder(tensors))
        with contextlib.redirect_stdout(io.StringIO()):
            default = seconds(lambda: ttgcd(words))
            once = min(once, seconds(lambda: encoder(tensors)))
            quick = seconds(lambda: ttgcd([*words, "--overwrite", "--epochs", "0",
                                           "--precision", "int8"]))  # fmt: skip
    rows = [
        Row("the default on photographs (ViT-B/16 shape), in encodings of all", 1.5, "at most",
            default / once, note=f"{args.images} images, buffer in proportion"),
        Row("the same with --epochs 0 --precision int8", 1.0, "at most", quick / once),
    ]  # fmt: skip
    report(rows)


if __name__ == "__main__":
    main()
