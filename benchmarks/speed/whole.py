"""The default on 2,000 photographs, everything included, against encoding them once.

    python -m benchmarks.speed.whole [--images 2000]

From the command to the report, with the shipped vocabulary encoded by a text tower of CLIP's own
shape. 2,000 photographs take a quarter of an hour on two cores: unless `--images` gives another
number, what they cost follows from a run with nothing in the cache and from the difference of two
runs of other lengths.
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

PHOTOGRAPHS, FEW, MANY = 2000, 32, 192


def ttgcd(words: list[str]) -> None:
    """A run that was stopped or refused must not pass for a fast one."""
    if command(words) != 0:
        raise SystemExit("the run did not finish: nothing was measured")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, help="run on so many instead of reckoning")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    asked = args.images or PHOTOGRAPHS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The vocabulary's embeddings are kept in a cache: here nothing is there yet.
        os.environ["TTGCD_CACHE"] = str(folder / "cache")
        model = vit_b16(folder / "model", text_tower="clip")
        few = write_photographs(folder / "few", FEW)
        many = write_photographs(folder / "many", args.images or MANY)

        def run(source: Path, *options: str) -> float:
            words = ["discover", str(source), "--model", str(model), "--known", NAMES,
                     "--novel", "10", "--quiet", "--overwrite", "--out", str(folder / "out"),
                     *options]  # fmt: skip
            with contextlib.redirect_stdout(io.StringIO()):
                return seconds(lambda: ttgcd(words))

        vlm = load_vlm(str(model))
        files = sorted(few.iterdir())
        tensors = torch.stack([vlm.preprocess(decode(file.read_bytes())) for file in files])
        encoder = vlm.encoder()
        encoder(tensors[:8])
        once = seconds(lambda: encoder(tensors))
        if args.images:
            default, how = run(many), "measured on all of them"
        else:
            cold, warm, more = run(few), run(few), run(many)
            default = cold + (more - warm) / (MANY - FEW) * (asked - FEW)
            how = f"from runs of {FEW} and {MANY}; {cold - warm:.0f} s of it the vocabulary, once"
        once = (once + seconds(lambda: encoder(tensors))) / 2 * asked / FEW
        short, long = (run(source, "--precision", "int8") for source in (few, many))
        quick = short + (long - short) / (len(list(many.iterdir())) - FEW) * (asked - FEW)
    rows = [
        Row(f"the default on {asked:,} photographs (ViT-B/16 shape), in encodings of all", 1.5,
            "at most", default / once, note=f"{default:.0f} s, {how}"),
        Row("the same with --precision int8, words in the cache", 1.0, "at most", quick / once,
            note=f"{quick:.0f} s"),
    ]  # fmt: skip
    report(rows)


if __name__ == "__main__":
    main()
