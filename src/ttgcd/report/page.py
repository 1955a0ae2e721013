"""One page for a run: what was found, every image, how the stream went, whether to trust it."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import quote

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Category
from ttgcd.report import header
from ttgcd.report.course import course, seed_rows
from ttgcd.report.gallery import (
    COLUMNS,
    ROWS,
    Gallery,
    begin_gallery,
    pack,
    picture_order,
)
from ttgcd.report.layout import layout
from ttgcd.report.reliability import reliability
from ttgcd.report.run_files import RunFiles
from ttgcd.report.summary import StreamSummary
from ttgcd.report.verdict import findings, headline
from ttgcd.streams.base import Source
from ttgcd.streams.open import open_source

_HERE = Path(__file__).parent / "web"
#: In the order in which they are put together; each is one closed part of the page's script.
_SCRIPTS = ("data", "edits", "thumbs", "gallery", "cards", "charts", "map", "start")


def write_report(
    out: str | os.PathLike[str],
    *,
    summary: StreamSummary | None = None,
    source: Source | None = None,
    labels: Mapping[str, str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Path:
    """Draw ``out/report.html`` from the files of the run in ``out``.

    At the end of a run ``summary`` gives the sample of features for the map, ``source`` the
    pictures and ``labels`` (by id) the reliability; all are kept in ``out/report_files``. Later
    calls need none of them: the page is drawn again, e.g. after an edit, from what is there.
    Pictures that were never packed are looked for where run.json says that the images came from.
    """
    folder = Path(out)
    run = RunFiles.read(folder)
    fresh = summary is not None or source is not None or labels is not None
    gallery = None if fresh else Gallery.read(folder, len(run))
    if gallery is None:
        gallery = _make_gallery(run, summary, source, progress or _silent)
        if labels is not None:
            gallery = replace(gallery, reliability=reliability(run, labels))
        gallery.write(folder)
    path = folder / "report.html"
    # Names that are not valid Unicode must not cost the user the report.
    path.write_text(_page(run, gallery), encoding="utf-8", errors="replace")
    return path


def _silent(phase: str, done: int, total: int) -> None:
    """Default of ``progress``."""


def _make_gallery(
    run: RunFiles,
    summary: StreamSummary | None,
    source: Source | None,
    progress: Callable[[str, int, int], None],
) -> Gallery:
    points, projection, shown = [], "none", np.zeros(0, int)
    if summary is not None:
        sample = summary.map_sample()
        flat, projection = layout(sample["features"])
        shown = sample["index"]
        points = [(x, y, at) for (x, y), at in zip(np.round(flat, 4).tolist(), shown.tolist())]
    gallery = Gallery(picture_order(run, shown), projection=projection, points=points)
    begin_gallery(run.out)
    source = source or _reopened(run)
    if source is not None and source.kind == "images":
        sheets, missing = pack(run.out, run, source, gallery.order, progress)
        if len(missing) < len(gallery.order):
            gallery = replace(gallery, sheets=sheets, missing=missing)
    return gallery


def _reopened(run: RunFiles) -> Source | None:
    """The source of an earlier run, if it is still where it was."""
    origin = run.record.get("input", {}).get("source")
    if not isinstance(origin, str) or not os.path.exists(origin):
        return None
    try:
        return open_source(origin)
    except InputError:
        return None


# -- the page -------------------------------------------------------------------------------------


def _page(run: RunFiles, gallery: Gallery) -> str:
    script = "\n".join(_read(f"{name}.js") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}\n}})();'
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    found = findings(run)
    verdict = headline(found)
    return Template(_read("page.html")).substitute(
        title=escape(header.title(run)),
        css=_read("page.css"),
        js=script,
        script_hash=f"sha256-{digest}",
        headline=header.headline(run),
        subline=header.subline(run),
        pills=header.pills(run, verdict, found),
        notes=header.notes(run.record.get("notes") or []),
        list=_plain_list(run),
        pictures_note=_pictures_note(run, gallery),
        map_caption=_map_caption(run, gallery),
        verdict=escape(verdict.text),
        verdict_level=verdict.level,
        findings="".join(f'<li class="{f.level}">{escape(f.text)}</li>' for f in found),
        scores=_scores(run),
        rejected=_rejected(run),
        manifest=escape(json.dumps(run.record, indent=2, ensure_ascii=False)),
        data=_json(_data(run, gallery)),
    )


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _data(run: RunFiles, gallery: Gallery) -> dict[str, Any]:
    """What the page's script works on. Rows are the images of the gallery, in cell order."""
    order = np.array(gallery.order, int)
    cell = {at: row for row, at in enumerate(gallery.order)}
    seeds = seed_rows(run)[order]
    addresses = gallery.addresses(run.out)
    went = course(run)
    return {
        "run": _run_key(run),
        "out": run.out.resolve().name,
        "categories": [_category(c, run) for c in run.categories],
        "samples": len(run),
        "rows": {
            "id": [run.ids[at] for at in gallery.order],
            "category": run.category[order].tolist(),
            "score": np.round(run.score[order].astype(float), 3).tolist(),
            "doubt": np.round(run.doubt[order].astype(float), 2).tolist(),
            "seed": np.flatnonzero(seeds).tolist(),
        },
        "sheets": {"columns": COLUMNS, "rows": ROWS, "size": len(order), "at": addresses},
        "missing": gallery.missing,
        "originals": _originals(run),
        "points": [[x, y, cell[at]] for x, y, at in gallery.points if at in cell],
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
        "calibrated": "confidence" in run.columns,
        "losses": list(run.health.get("realign_losses") or []),
        "drift": _drift(run),
        # The estimate tries numbers of clusters in all, K + L; the page speaks of L.
        "estimate": sorted(
            [int(k) - run.n_known, score] for k, score in run.record.get("count_trace") or []
        ),
        "chosen": run.record.get("novel"),
    }


def _json(data: Any) -> str:
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
    digest = hashlib.sha256(json.dumps(facts).encode())
    log = run.out / "edits.jsonl"
    if log.exists():
        digest.update(log.read_bytes())
    return digest.hexdigest()[:16]


def _category(c: Category, run: RunFiles) -> dict[str, Any]:
    return {
        "id": c.id,
        "name": c.name,
        "novel": c.kind == "novel",
        "count": run.counts.get(c.id, 0),
        "suggested": [str(name) for name in c.suggested_names[:5]],
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


def _plain_list(run: RunFiles) -> str:
    """For a browser without JavaScript."""
    rows = sorted(run.categories, key=lambda c: (-run.counts.get(c.id, 0), c.id))
    return "".join(
        f"<dt>{escape(c.name)}</dt><dd>{c.kind}, {run.counts.get(c.id, 0):,}</dd>" for c in rows
    )


def _pictures_note(run: RunFiles, gallery: Gallery) -> str:
    if run.record.get("input", {}).get("kind") == "embeddings":
        text = "The input holds embeddings, not images: samples are shown by their names."
    elif not gallery.sheets:
        text = "The images could not be read again: samples are shown by their names."
    elif len(gallery.order) < len(run):
        text = (
            f"{len(gallery.order):,} of {len(run):,} images are shown and searched: of every "
            "category the most typical, the least typical and the most doubtful."
        )
    else:
        return ""
    return f'<p class="caption">{text}</p>'


def _map_caption(run: RunFiles, gallery: Gallery) -> str:
    shown = len(gallery.points)
    if shown == 0:
        return "The method gave no embeddings, so there is no map."
    which = f"All {shown:,} images" if shown >= len(run) else f"{shown:,} images at random"
    return (
        f"{which}, placed by {gallery.projection}: near points look alike to the model; the axes "
        "and far distances mean nothing. Circles are in known classes, triangles in new categories."
    )


def _scores(run: RunFiles) -> str:
    scores = run.scores
    if scores is None:
        return ""
    named = (("all", "All"), ("known", "Known"), ("novel", "Novel"))
    more = [(k, k.replace("_", " ")) for k in scores if k not in ("all", "known", "novel")]
    rows = []
    for key, label in (*named, *more):
        value = scores.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        said = f"{value:,}" if isinstance(value, int) else f"{value:.1f}"
        rows.append(f'<tr><th scope="row">{escape(label)}</th><td>{said}</td></tr>')
    return (
        '<section id="scores"><h2>Accuracy against your labels <span>percent</span></h2>'
        f'<div class="scroll"><table>{"".join(rows)}</table></div><p class="caption">'
        "The labels were used for scoring only; the method never saw them. All, Known and Novel "
        "share one optimal matching of categories to labels.</p></section>"
    )


def _rejected(run: RunFiles) -> str:
    if not run.rejected:
        return ""
    rows = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{escape(reason)}</td></tr>"
        for name, reason in run.rejected[:200]
    )
    more = f" The first 200 of {len(run.rejected):,}:" if len(run.rejected) > 200 else ""
    return (
        f'<section id="rejected"><h2>Set aside <span>{len(run.rejected):,}</span></h2>'
        f'<p class="caption">Files that could not be read; also in rejected.csv.{more}</p>'
        f'<div class="scroll tall"><table class="words">{rows}</table></div></section>'
    )
