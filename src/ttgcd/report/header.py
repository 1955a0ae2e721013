"""The first screen: what was found, from what, with what, and whether to trust it."""

from __future__ import annotations

import os
from datetime import datetime
from html import escape
from typing import Any

from ttgcd.report.run_files import RunFiles
from ttgcd.report.verdict import Judgement
from ttgcd.wording import as_options


def source_name(run: RunFiles) -> str | None:
    """What the images came from, as short as a person would say it."""
    origin = run.record.get("input", {}).get("source")
    if not isinstance(origin, str) or not origin:
        return None
    return os.path.basename(origin.rstrip("/\\")) or origin


def noun(run: RunFiles) -> tuple[str, str]:
    """What the samples are called, one and many."""
    embeddings = run.record.get("input", {}).get("kind") == "embeddings"
    return ("sample", "samples") if embeddings else ("image", "images")


def kind_of(run: RunFiles) -> tuple[str, str]:
    """What categories without a name are called, one and many: new beside classes that the user
    named, groups where nothing was named."""
    return ("new category", "new categories") if run.names_given else ("group", "groups")


def title(run: RunFiles) -> str:
    """The page's title: which run this is, among several open tabs."""
    name = source_name(run) or count_of(len(run), *noun(run))
    return f"{name}: {count_of(_used(run, 'novel'), *kind_of(run))} - ttgcd"


def headline(run: RunFiles) -> str:
    """One sentence for the user."""
    novel = int(run.is_novel.sum())
    total = count_of(len(run), *noun(run))
    named = f"{len(run) - novel:,} in {count_of(_used(run, 'known'), 'class', 'classes')} you named"
    if novel == 0:
        return f"{total}, all in the classes you named"
    groups = count_of(_used(run, "novel"), *kind_of(run))
    if run.n_known == 0:
        return f"{total} in <em>{groups}</em>"
    return f"{total}: {named}, <em>{novel:,} in {groups}</em>"


def subline(run: RunFiles) -> str:
    """Folder, model, method, date and duration, read from run.json."""
    record, parts = run.record, []

    def say(label: str, value: object, more: str = "") -> None:
        hint = f' title="{escape(more)}"' if more else ""
        parts.append(f"<span>{label} <b{hint}>{escape(str(value))}</b></span>")

    origin = record.get("input", {}).get("source")
    if name := source_name(run):
        say("from", name, str(origin))
    settings: dict[str, Any] = record.get("settings") or {}
    model = record.get("model") or {}
    if model.get("name"):
        say("model", model["name"], f"sha256 {model.get('sha256', 'unknown')}")
    if settings.get("method"):
        method, preset = settings["method"], settings.get("preset")
        say("method", f"{method} ({preset})" if preset not in (None, "", method) else method)
    if ended := _moment(record.get("ended")):
        say("on", ended)
    seconds = (record.get("seconds") or {}).get("total")
    if isinstance(seconds, (int, float)):
        say("took", duration(seconds))
    return " ".join(parts)


def pills(run: RunFiles, verdict: Judgement) -> str:
    """The verdict in a word and a sentence, and what was set aside; each leads to more."""
    items = [
        f'<a class="pill {verdict.level}" href="#health">{verdict.word}</a>',
        f'<span class="reason">{escape(as_options(verdict.sentence))}</span>',
    ]
    if run.rejected:
        said = f"{count_of(len(run.rejected), 'file', 'files')} set aside"
        items.append(f'<a class="pill look" href="#rejected">{said}</a>')
    return "".join(items)


def notes(run: RunFiles) -> str:
    """What the run wants to be known, in small print; to users of the command in its words."""
    given: list[str] = run.record.get("notes") or []
    said = map(as_options, given) if run.record.get("command") else given
    lines = "".join(f"<li>{escape(note[:1].upper() + note[1:])}.</li>" for note in said)
    return f'<ul class="notes" aria-label="Notes">{lines}</ul>' if lines else ""


def duration(seconds: float) -> str:
    """A time as a person would say it."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def count_of(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _used(run: RunFiles, kind: str) -> int:
    return sum(c.kind == kind and c.id in run.counts for c in run.categories)


def _moment(text: Any) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return ""
    return moment.strftime("%d %B %Y, %H:%M").lstrip("0") + (" UTC" if moment.tzinfo else "")
