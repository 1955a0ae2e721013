"""Run all speed benchmarks, print the table, write it into docs/performance.md.

python -m benchmarks.speed [--only decode,start] [--write] [--quick]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.speed.rows import Row, machine

PARTS = (
    "start",
    "decode",
    "stream",
    "whole",
    "int8",
    "warmup",
    "prototypes",
    "scout",
    "embeddings",
)
#: Fewer images for a machine that is busy: coarser, but still ratios.
QUICK = {
    "stream": ["--images", "24", "--repeats", "1", "--batches", "1", "8"],
    "whole": ["--images", "64"],
    "int8": ["--seeds", "1"],
    "warmup": ["--without-vit"],
    "scout": ["--samples", "20000"],
    "embeddings": ["--rows", "200000"],
}
ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "speed.json"
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "img" / "growth.svg"
BEGIN, END = "<!-- speed table: make bench -->", "<!-- end of speed table -->"


def measure(part: str, quick: bool) -> list[Row]:
    """A process of its own for every part, so that none inherits another's memory or threads."""
    print(f"{part} ...", file=sys.stderr, flush=True)
    began = time.perf_counter()
    extra = QUICK.get(part, []) if quick else []
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.speed.{part}", "--json", *extra],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        raise SystemExit(f"benchmark {part} failed")
    print(f"{part}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return [Row(**json.loads(line)) for line in lines]


def table(results: dict[str, list[Row]], where: str) -> str:
    lines = [f"Measured on {where}.", "", "| What | Target | Measured | | Command | |"]
    lines.append("|---|---|---|---|---|---|")
    for part, rows in results.items():
        for row in rows:
            sense = "≥" if row.sense == "at least" else "≤"
            lines.append(
                f"| {row.what} | {sense} {row.target:,g}{row.unit} | {_short(row.measured)}"
                f"{row.unit} | {'yes' if row.reached else '**no**'} | "
                f"`python -m benchmarks.speed.{part}` | {row.note} |"
            )
    return "\n".join(lines)


def draw_growth() -> None:
    print("growth ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "benchmarks.speed.growth", str(PICTURE)]
    subprocess.run(command, check=True, cwd=ROOT)


def _picture() -> str:
    """The growth of the costs, once it has been drawn."""
    if not PICTURE.is_file():
        return ""
    return (
        "\n\n![Processor time a sample by the length of the stream and by the number of categories]"
        f"(img/{PICTURE.name})"
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="parts, e.g. decode,start; the others keep their results")
    parser.add_argument("--write", action="store_true", help="results/speed.json and the page")
    parser.add_argument("--quick", action="store_true", help="fewer images")
    args = parser.parse_args()
    chosen = args.only.split(",") if args.only else [*PARTS, "growth"]
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    results: dict[str, list[Row]] = {}
    for part in PARTS:
        if part in chosen:
            results[part] = measure(part, args.quick)
        elif part in kept.get("rows", {}):
            results[part] = [Row(**row) for row in kept["rows"][part]]
    where = machine()
    print(table(results, where))
    if args.write:
        rows = {part: [vars(row) for row in found] for part, found in results.items()}
        record = {"machine": where, "rows": rows}
        RESULTS.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        after = rest.split(END)[1]
        if "growth" in chosen:
            draw_growth()
        new = f"{before}{BEGIN}\n{table(results, where)}{_picture()}\n{END}{after}"
        PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
