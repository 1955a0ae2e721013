"""The default on photographs, everything included, against encoding them once.

    python -m benchmarks.speed.whole [--images 2000]

From the command to the report, with the shipped vocabulary encoded by a text tower of CLIP's own
shape. What encoding all images once takes is measured on a few of them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import tempfile
from pathlib import Path

import torch

from benchmarks.speed.models import NAMES, vit_b16, write_photographs
from benchmarks.speed.rows import Row, report, seconds
from ttgcd.cli import main as command
from ttgcd.streams.decode import decode
from ttgcd.vlm import load_vlm

ENCODED = 64


def ttgcd(words: list[str]) -> None:
    """A run that was stopped or refused must not pass for a fast one."""
    if command(words) != 0:
        raise SystemExit("the run did not finish: nothing was measured")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The vocabulary's embeddings are kept in a cache: here nothing is there yet.
        os.environ["TTGCD_CACHE"] = str(folder / "cache")
        model = vit_b16(folder / "model", text_tower="clip")
        source = write_photographs(folder / "photographs", args.images)
        vlm = load_vlm(str(model))
        files = sorted(source.iterdir())[:ENCODED]
        tensors = torch.stack([vlm.preprocess(decode(file.read_bytes())) for file in files])
        encoder = vlm.encoder()
        encoder(tensors[:8])
        words = ["discover", str(source), "--model", str(model), "--known", NAMES, "--novel", "10",
                 "--quiet", "--out", str(folder / "out")]  # fmt: skip
        once = seconds(lambda: encoder(tensors))
        with contextlib.redirect_stdout(io.StringIO()):
            default = seconds(lambda: ttgcd(words))
            once = (once + seconds(lambda: encoder(tensors))) / 2 * args.images / len(files)
            quick = seconds(
                lambda: ttgcd([*words, "--overwrite", "--precision", "int8"])
            )  # the vocabulary is in the cache now
    rows = [
        Row("the default on photographs (ViT-B/16 shape), in encodings of all", 1.5, "at most",
            default / once, note=f"{args.images:,} images in {default:.0f} s, words included"),
        Row("the same with --precision int8, words in the cache", 1.0, "at most", quick / once,
            note=f"{quick:.0f} s"),
    ]  # fmt: skip
    report(rows)


if __name__ == "__main__":
    main()
