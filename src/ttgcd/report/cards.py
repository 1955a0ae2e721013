"""One card a category: its pictures, its size, what it may be called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from html import escape
from string import Template
from typing import Any

from ttgcd.report.summary import StreamSummary

Thumbnails = Callable[[int], "str | None"]

_PICTURE_PREFIX = "data:image/"


def pictures_per_card(categories: int, novel: bool) -> tuple[int, int]:
    """Typical and atypical pictures to show, so that the page stays small enough to mail."""
    for most, shown in ((20, (12, 4)), (100, (8, 3)), (300, (4, 0))):
        if categories <= most:
            return shown
    return (4, 0) if novel else (2, 0)


def load_pictures(
    summary: StreamSummary, categories: Iterable[int], thumbnails: Thumbnails | None
) -> dict[int, str]:
    """The pictures that the cards show, by position in the source."""
    ids = list(categories)
    if thumbnails is None:
        return {}
    positions: set[int] = set()
    for c in ids:
        typical, atypical = pictures_per_card(len(ids), c >= summary.n_known)
        shown = summary.exemplars(c)[:typical] + summary.atypical(c)[:atypical]
        positions.update(sample["position"] for sample in shown)
    wanted = sorted(positions)
    with ThreadPoolExecutor(max_workers=4) as pool:  # decoding leaves the interpreter lock alone
        found = dict(zip(wanted, pool.map(thumbnails, wanted)))
    return {at: uri for at, uri in found.items() if uri and uri.startswith(_PICTURE_PREFIX)}


def card(
    template: Template,
    category: dict[str, Any],
    summary: StreamSummary,
    pictures: dict[int, str],
    used: int,
) -> str:
    """The HTML of one category. Whatever came from the user is escaped."""
    c, count = int(category["id"]), int(category["count"])
    name = str(category["name"])
    share = count / max(summary.counted, 1)
    shown = pictures_per_card(used, category["kind"] == "novel")
    relative = count / max(int(summary.counts.max(initial=0)), 1)
    typical = summary.exemplars(c)[: shown[0]]
    seen = {sample["index"] for sample in typical}
    atypical = [s for s in summary.atypical(c)[: shown[1]] if s["index"] not in seen]
    suggested = [_suggestion(s) for s in category.get("suggested_names") or []]
    search = " ".join([name, *(s[0] for s in suggested), *(s["id"] for s in typical)]).lower()
    return template.substitute(
        kind="novel" if category["kind"] == "novel" else "known",
        empty="" if count else " empty",
        id=c,
        search=escape(search),
        name=escape(name),
        count=f"{count:,}",
        share=percent(share) if count else "none seen",
        width=f"{100 * relative:.1f}%",
        suggested=_chips(suggested),
        pictures=_examples(typical, pictures, name, "Example of"),
        atypical=_atypical(atypical, pictures, name),
        facts=" · ".join(_facts(category)),
    )


def percent(share: float) -> str:
    """A share as a person would say it."""
    if 0 < share < 0.001:
        return "under 0.1%"
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"


def _suggestion(given: Any) -> tuple[str, float | None]:
    if isinstance(given, dict):
        return str(given["name"]), given.get("score")
    return str(given), None


def _chips(suggested: list[tuple[str, float | None]]) -> str:
    if not suggested:
        return ""
    chips = "".join(
        f"<li>{escape(name)}" + ("" if score is None else f" <small>{score:.2f}</small>") + "</li>"
        for name, score in suggested[:5]
    )
    return f'<ul class="chips" aria-label="Suggested names"><li class="lead">maybe</li>{chips}</ul>'


def _examples(samples: list[dict[str, Any]], pictures: dict[int, str], name: str, what: str) -> str:
    shown = [s for s in samples if s["position"] in pictures]
    if shown:
        images = "".join(
            f'<img loading="lazy" decoding="async" width="96" height="96" '
            f'src="{escape(pictures[s["position"]])}" '
            f'alt="{what} {escape(name)}: {escape(s["id"])}" '
            f'title="{escape(s["id"])} (score {s["score"]:.3f})">'
            for s in shown
        )
        return f'<div class="pictures">{images}</div>'
    if not samples:
        return ""
    items = "".join(
        f"<li>{escape(s['id'])} <small>{s['score']:.3f}</small></li>" for s in samples[:5]
    )
    return f'<ol class="ids" aria-label="Most typical samples">{items}</ol>'


def _atypical(samples: list[dict[str, Any]], pictures: dict[int, str], name: str) -> str:
    if not any(s["position"] in pictures for s in samples):
        return ""
    images = _examples(samples, pictures, name, "Least typical of")
    return f'<div class="atypical"><p>Least typical</p>{images}</div>'


def _facts(category: dict[str, Any]) -> list[str]:
    facts = [f"id {int(category['id'])}"]
    evidence = category.get("evidence")
    if evidence is not None:
        facts.append(f"evidence {float(evidence):,.1f}")
    if category.get("active") is False:
        facts.append("inactive")
    return facts
