"""One self-contained page: what was found, how the stream went, whether the run was healthy."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from ttgcd.report.cards import Thumbnails, card, load_pictures, percent
from ttgcd.report.layout import layout
from ttgcd.report.summary import StreamSummary
from ttgcd.report.verdict import findings, headline

_HERE = Path(__file__).parent
_HEADINGS = {"all": "All", "known": "Known", "novel": "Novel"}


def write_report(
    path: str | os.PathLike[str],
    *,
    summary: StreamSummary,
    categories: Sequence[dict[str, Any]],
    manifest: dict[str, Any],
    health: dict[str, Any],
    thumbnails: Thumbnails | None,
    scores: dict[str, float] | None = None,
    notes: Sequence[str] = (),
    estimate_trace: Sequence[Sequence[float]] | None = None,
) -> None:
    """Write the page to ``path``.

    ``categories`` are the records of categories.json; their pictures come from ``summary``.
    ``thumbnails`` gives a data URI for a position in the source, and is None for a stream of
    embeddings. ``scores`` are fractions. Of the ``manifest`` the page reads ``rejected`` (how many
    samples were set aside), ``source``, ``method``, ``model`` and ``seconds`` where they are
    given, and shows all of it.
    """
    novel = _by_size(categories, "novel")
    known = _by_size(categories, "known")
    used = [int(c["id"]) for c in (*novel, *known) if c["count"]]
    pictures = load_pictures(summary, used, thumbnails)
    template = Template(_read("card.html"))
    found = findings(summary, health)
    verdict = headline(found)
    points, projection = _points(summary)
    script = _read("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    share_novel = sum(c["count"] for c in novel) / max(summary.counted, 1)
    page = Template(_read("page.html")).substitute(
        title=escape(_title(manifest)),
        css=_read("page.css"),
        js=script,
        script_hash=f"sha256-{digest}",
        headline=_headline(summary, novel, share_novel),
        subline=_subline(manifest),
        notes="".join(f'<p class="note">{escape(note)}</p>' for note in notes),
        tiles=_tiles(summary, known, novel, share_novel, manifest, scores),
        novel_heading=_in_use(novel),
        known_heading=_in_use(known),
        pictures_note=_pictures_note(thumbnails, pictures, used),
        novel_cards=_cards(template, novel, summary, pictures, len(used)),
        known_cards=_cards(template, known, summary, pictures, len(used)),
        share_caption=_share_caption(summary),
        map_label=escape(f"Scatter plot of {len(points)} samples by likeness of their embeddings"),
        map_caption=_map_caption(len(points), projection, summary),
        verdict=escape(verdict.text),
        verdict_level=verdict.level,
        findings="".join(f'<li class="{f.level}">{escape(f.text)}</li>' for f in found),
        scores=_scores(scores),
        manifest=escape(json.dumps(manifest, indent=2, ensure_ascii=False, default=str)),
        data=_json(
            {
                "categories": [_plain(c) for c in (*novel, *known)],
                "points": points,
                "timeline": {k: v.tolist() for k, v in summary.timeline().items()},
                "losses": list(health.get("realign_losses") or []),
                "drift": _drift(health, categories),
                "estimate": [list(pair) for pair in estimate_trace or []],
            }
        ),
    )
    # Names that are not valid Unicode must not cost the user the report.
    Path(path).write_text(page, encoding="utf-8", errors="replace")


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


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


def _by_size(categories: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return sorted(
        (c for c in categories if c["kind"] == kind), key=lambda c: (-c["count"], c["id"])
    )


def _plain(category: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": int(category["id"]),
        "name": str(category["name"]),
        "novel": category["kind"] == "novel",
        "count": int(category["count"]),
    }


def _cards(
    template: Template,
    categories: list[dict[str, Any]],
    summary: StreamSummary,
    pictures: dict[int, str],
    used: int,
) -> str:
    return "".join(card(template, c, summary, pictures, used) for c in categories)


def _points(summary: StreamSummary) -> tuple[list[list[Any]], str]:
    """Map points as [x, y, category, id]."""
    sample = summary.map_sample()
    flat, projection = layout(sample["features"])
    rows = zip(np.round(flat, 4).tolist(), sample["category"].tolist(), sample["id"])
    return [[x, y, category, name] for (x, y), category, name in rows], projection


def _drift(health: dict[str, Any], categories: Sequence[dict[str, Any]]) -> list[list[Any]]:
    names = {int(c["id"]): str(c["name"]) for c in categories}
    drift: list[list[Any]] = [
        [names.get(c, str(c)), float(d)]
        for c, d in enumerate(health.get("prototype_drift") or [])
        if d is not None and math.isfinite(d)
    ]
    return sorted(drift, key=lambda pair: -pair[1])[:12]


def _count_of(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _title(manifest: dict[str, Any]) -> str:
    source = manifest.get("source")
    return f"Discovery report: {source}" if isinstance(source, str) else "Discovery report"


def _headline(summary: StreamSummary, novel: list[dict[str, Any]], share_novel: float) -> str:
    total = _count_of(summary.counted, "sample", "samples")
    used = sum(1 for c in novel if c["count"])
    if summary.counted == 0:
        return "Nothing was sorted yet"
    if used == 0:
        return f"{total}, all in the classes you named"
    what = _count_of(used, "new category", "new categories")
    return f"{total}: <em>{percent(share_novel)} in {what}</em>, the rest in classes you named"


def _subline(manifest: dict[str, Any]) -> str:
    parts = [
        f"<span>{label} <b>{escape(str(manifest[key]))}</b></span>"
        for key, label in (("source", "from"), ("method", "method"), ("model", "model"))
        if isinstance(manifest.get(key), (str, int))
    ]
    seconds = manifest.get("seconds")
    if isinstance(seconds, (int, float)):
        parts.append(f"<span>took <b>{_duration(seconds)}</b></span>")
    return " ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def _in_use(categories: list[dict[str, Any]]) -> str:
    used = sum(1 for c in categories if c["count"])
    if not categories:
        return "none asked for"
    return f"{used:,}" if used == len(categories) else f"{used:,} of {len(categories):,} in use"


def _tiles(
    summary: StreamSummary,
    known: list[dict[str, Any]],
    novel: list[dict[str, Any]],
    share_novel: float,
    manifest: dict[str, Any],
    scores: dict[str, float] | None,
) -> str:
    tiles = [
        (f"{summary.counted:,}", "samples sorted", ""),
        (f"{sum(1 for c in novel if c['count']):,}", "new categories", "novel"),
        (f"{percent(share_novel)}", "of samples are new", "novel"),
        (
            f"{sum(1 for c in known if c['count']):,}<small> of {len(known):,}</small>",
            "known classes seen",
            "known",
        ),
    ]
    if scores is not None:
        tiles += [
            (f"{100 * scores[key]:.1f}%", f"accuracy, {name}", "")
            for key, name in _HEADINGS.items()
            if math.isfinite(scores.get(key, math.nan))
        ]
    rejected = manifest.get("rejected")
    if isinstance(rejected, int):
        tiles.append((f"{rejected:,}", "set aside as unreadable", "warn" if rejected else ""))
    return "".join(
        f'<li class="{kind}"><b>{number}</b><span>{label}</span></li>'
        for number, label, kind in tiles
    )


def _pictures_note(thumbnails: Thumbnails | None, pictures: dict[int, str], used: list[int]) -> str:
    if pictures or not used:
        return ""
    if thumbnails is None:
        text = "The input holds embeddings, not images, so there are no pictures to show: each "
        text += "category lists its most typical samples and their similarity instead."
    else:
        text = "The original images could not be read again, so there are no pictures to show."
    return f'<p class="caption">{text}</p>'


def _share_caption(summary: StreamSummary) -> str:
    timeline = summary.timeline()
    if len(timeline["start"]) == 0:
        return "No sample has a final answer yet."
    step = int(timeline["end"][0] - timeline["start"][0])
    share = timeline["novel"] / (timeline["novel"] + timeline["known"])
    return (
        f"Share of samples in steps of {step:,}, in the order of arrival. New: "
        f"{percent(float(share[0]))} at the start, {percent(float(share[-1]))} at the end, between "
        f"{percent(float(share.min()))} and {percent(float(share.max()))} on the way."
    )


def _map_caption(shown: int, projection: str, summary: StreamSummary) -> str:
    if shown == 0:
        return "The method gave no embeddings, so there is no map."
    which = f"All {shown:,} samples" if shown >= summary.seen else f"{shown:,} samples at random"
    return (
        f"{which}, placed by {projection}: near points "
        "look alike to the model; the axes and far distances mean nothing. Circles are in known "
        "classes, triangles in new categories."
    )


def _scores(scores: dict[str, float] | None) -> str:
    if scores is None:
        return ""
    rows = []
    for key, value in scores.items():
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            continue
        name = _HEADINGS.get(key, key.replace("_", " "))
        said = f"{value:,}" if isinstance(value, int) else f"{100 * value:.1f}"
        rows.append(f'<tr><th scope="row">{escape(name)}</th><td>{said}</td></tr>')
    return (
        '<section id="scores"><h2>Scores against the labels <span>percent</span></h2>'
        f'<div class="scroll"><table>{"".join(rows)}</table></div><p class="caption">'
        "The labels were used for scoring only; the method never saw them. All, Known and Novel "
        "share one optimal matching of categories to labels.</p></section>"
    )
