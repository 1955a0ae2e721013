"""One page for a run: what was found, every image, how the stream went, whether to trust it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from string import Template

import numpy as np

from ttgcd.errors import InputError
from ttgcd.prototypes.questions import next_questions
from ttgcd.report import header, sections
from ttgcd.report.findings import facts_of, findings
from ttgcd.report.gallery import (
    Gallery,
    begin_gallery,
    pack,
    picture_order,
)
from ttgcd.report.layout import layout
from ttgcd.report.page_data import page_data, script_json
from ttgcd.report.reliability import reliability
from ttgcd.report.run_files import RunFiles
from ttgcd.report.summary import StreamSummary
from ttgcd.report.thumbnails import KeptThumbnails
from ttgcd.report.verdict import judge
from ttgcd.storage.durable import write_atomic
from ttgcd.streams.base import Source
from ttgcd.streams.open import open_source
from ttgcd.streams.remote import is_address
from ttgcd.wording import as_options

_HERE = Path(__file__).parent / "web"
#: In the order in which they are put together; each is one closed part of the page's script.
_SCRIPTS = (
    *("data", "edits", "thumbs", "gallery", "cards", "levels", "questions", "charts", "map"),
    "start",
)


def write_report(
    out: str | os.PathLike[str],
    *,
    summary: StreamSummary | None = None,
    source: Source | None = None,
    kept: KeptThumbnails | None = None,
    labels: Mapping[str, str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Path:
    """Draw ``out/report.html`` from the files of the run in ``out``.

    At the end of a run ``summary`` gives the sample of features for the map, ``source`` the
    pictures (``kept`` has those that were made while it was decoded) and ``labels`` (by id) the
    reliability; all are kept in ``out/report_files``. Later calls need none of them: the page is
    drawn again, e.g. after an edit, from what is there. Pictures that were never packed are looked
    for where run.json says that the images came from.
    """
    folder = Path(out)
    run = RunFiles.read(folder)
    fresh = summary is not None or source is not None or labels is not None
    gallery = None if fresh else Gallery.read(folder, len(run))
    if gallery is None:
        gallery = _make_gallery(run, summary, source, kept, progress or _silent)
        if labels is not None:
            gallery = replace(gallery, reliability=reliability(run, labels))
        gallery.write(folder)
    path = folder / "report.html"
    # Names that are not valid Unicode must not cost the user the report.
    write_atomic(path, _page(run, gallery).encode("utf-8", errors="replace"))
    return path


def _silent(phase: str, done: int, total: int) -> None:
    """Default of ``progress``."""


def _make_gallery(
    run: RunFiles,
    summary: StreamSummary | None,
    source: Source | None,
    kept: KeptThumbnails | None,
    progress: Callable[[str, int, int], None],
) -> Gallery:
    gallery = Gallery([])
    if summary is not None:
        gallery = _from_features(run, summary)
    shown = np.array([at for _, _, at in gallery.points], int)
    gallery = replace(gallery, order=picture_order(run, shown))
    begin_gallery(run.out)
    source = source or _reopened(run)
    if source is not None and source.kind == "images":
        sheets, missing = pack(run.out, run, source, gallery.order, progress, kept)
        if len(missing) < len(gallery.order):
            gallery = replace(gallery, sheets=sheets, missing=missing)
    return gallery


def _from_features(run: RunFiles, summary: StreamSummary) -> Gallery:
    """What needs the sample of features: the map, and the questions worth asking."""
    sample = summary.map_sample()
    index, features = sample["index"], sample["features"]
    flat, projection = layout(features)
    novel = [c.id for c in run.categories if c.kind == "novel"]
    asked = next_questions(features, run.category[index], novel) if len(index) else []
    return Gallery(
        [],
        projection=projection,
        points=[(x, y, at) for (x, y), at in zip(np.round(flat, 4).tolist(), index.tolist())],
        questions=[
            (q.ask, list(q.categories), None if q.row is None else int(index[q.row])) for q in asked
        ],
    )


def _reopened(run: RunFiles) -> Source | None:
    """The source of an earlier run, if it is still where it was."""
    origin = run.record.get("input", {}).get("source")
    if not isinstance(origin, str) or not (is_address(origin) or os.path.exists(origin)):
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
    facts = facts_of(run)
    found, verdict = findings(run, facts), judge(facts)
    kinds = ("category", "new categories") if run.names_given else header.kind_of(run)
    return Template(_read("page.html")).substitute(
        kind=kinds[0],
        kinds=kinds[1],
        kinds_title=kinds[1].capitalize(),
        mode="Known or new" if run.names_given else "Named or not",
        shares="Known and new" if run.names_given else "Named and not",
        title=escape(header.title(run)),
        css=_read("page.css"),
        js=script,
        script_hash=f"sha256-{digest}",
        headline=header.headline(run),
        subline=header.subline(run),
        pills=header.pills(run, verdict),
        notes=header.notes(run),
        list=sections.plain_list(run),
        pictures_note=sections.pictures_note(run, gallery),
        levels_note=sections.levels_note(run),
        map_caption=sections.map_caption(run, gallery),
        verdict=escape(verdict.sentence),
        advice=escape(as_options(verdict.advice)),
        verdict_page=escape(verdict.page),
        verdict_level=verdict.level,
        findings="".join(f'<li class="{f.level}">{escape(f.text)}</li>' for f in found),
        scores=sections.scores_table(run),
        rejected=sections.rejected_table(run),
        manifest=escape(json.dumps(run.record, indent=2, ensure_ascii=False)),
        data=script_json(page_data(run, gallery)),
    )


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
