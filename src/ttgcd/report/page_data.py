"""What the page's script works on, as JSON inside the page."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from ttgcd.methods.answer import Category
from ttgcd.report.course import course, seed_rows
from ttgcd.report.gallery import COLUMNS, ROWS, Gallery
from ttgcd.report.header import noun
from ttgcd.report.run_files import RunFiles


def page_data(run: RunFiles, gallery: Gallery) -> dict[str, Any]:
    """What the page's script works on. Rows are the images of the gallery, in cell order."""
    order = np.array(gallery.order, int)
    cell = {at: row for row, at in enumerate(gallery.order)}
    seeds = seed_rows(run)[order]
    addresses = gallery.addresses(run.out)
    went = course(run)
    return {
        "run": _run_key(run),
        "logged": run.edits,
        "out": run.out.resolve().name,
        "categories": [_category(c, run) for c in run.categories],
        "samples": len(run),
        "noun": noun(run),
        "rows": {
            "id": run.ids.of(gallery.order),
            "category": run.category[order].tolist(),
            "score": np.round(run.score[order].astype(float), 3).tolist(),
            "doubt": np.round(run.doubt[order].astype(float), 2).tolist(),
            "seed": np.flatnonzero(seeds).tolist(),
        },
        "sheets": {"columns": COLUMNS, "rows": ROWS, "size": len(order), "at": addresses},
        "missing": gallery.missing,
        "originals": _originals(run),
        "points": [[x, y, cell[at]] for x, y, at in gallery.points if at in cell],
        "questions": [
            [ask, categories, None if at is None else cell[at]]
            for ask, categories, at in gallery.questions
            if at is None or at in cell
        ],
        "course": {
            "edges": went.edges.tolist(),
            "novel": went.novel_share.tolist(),
            "even": went.evenly_used.tolist(),
            "fit_known": went.fit_known.tolist(),
            "fit_novel": went.fit_novel.tolist(),
            "born_known": went.births_known.tolist(),
            "born_novel": went.births_novel.tolist(),
        },
        "warmup": run.warmup,
        "reliability": gallery.reliability,
        "calibrated": run.calibrated,
        "groups": not run.names_given,
        "losses": list(run.health.get("realign_losses") or []),
        "drift": _drift(run),
        # The estimate tries numbers of clusters in all, K + L; the page speaks of L.
        "estimate": sorted(
            [int(k) - run.n_known, score] for k, score in run.record.get("count_trace") or []
        ),
        "chosen": run.record.get("novel"),
    }


def script_json(data: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end or open a tag."""
    text = json.dumps(_finite(data), separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(data: Any) -> Any:
    """NaN and infinity are not JSON: they become null."""
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


def _run_key(run: RunFiles) -> str:
    """Names this state of this run: edits that wait in a browser must meet no other."""
    facts = [run.record.get("input", {}).get("fingerprint"), run.record.get("started")]
    return hashlib.sha256(json.dumps(facts).encode() + run.log).hexdigest()[:16]


def _category(c: Category, run: RunFiles) -> dict[str, Any]:
    return {
        "id": c.id,
        "name": c.name,
        "novel": c.kind == "novel",
        "count": run.counts.get(c.id, 0),
        "suggested": [str(name) for name in c.suggested_names[:5]],
        "good": c.good_name,
        "inactive": c.active is False,
        "merged": c.merged_into,
        "hidden": c.id in run.hidden,
    }


def _originals(run: RunFiles) -> str | None:
    """Address of the folder that the ids are paths in, from the page's own place where possible."""
    base = run.record.get("input", {}).get("folder")
    if not isinstance(base, str):
        return None
    try:
        relative = os.path.relpath(base, run.out.resolve()).replace(os.sep, "/")
    except ValueError:  # another drive
        return Path(base).as_uri() + "/"
    return "./" + quote(relative, errors="surrogateescape") + "/"


def _drift(run: RunFiles) -> list[list[Any]]:
    """The prototypes that moved most since the warm-up: category id, 1 - cosine."""
    moved: list[list[Any]] = [
        [c, float(d)]
        for c, d in enumerate(run.health.get("prototype_drift") or [])
        if d is not None and math.isfinite(d)
    ]
    return sorted(moved, key=lambda pair: -pair[1])[:8]
