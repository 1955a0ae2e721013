"""Parts of the page that are plain HTML: what needs no script. Everything is escaped here."""

from __future__ import annotations

from html import escape

from ttgcd.report.gallery import Gallery
from ttgcd.report.header import kind_of
from ttgcd.report.run_files import RunFiles


def plain_list(run: RunFiles) -> str:
    """For a browser without JavaScript."""
    rows = sorted(run.categories, key=lambda c: (-run.counts.get(c.id, 0), c.id))
    kinds = {"novel": "novel" if run.names_given else "group"}
    return "".join(
        f"<dt>{escape(c.name)}</dt>"
        f"<dd>{kinds.get(c.kind, c.kind)}, {run.counts.get(c.id, 0):,}</dd>"
        for c in rows
    )


def pictures_note(run: RunFiles, gallery: Gallery) -> str:
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


def map_caption(run: RunFiles, gallery: Gallery) -> str:
    shown = len(gallery.points)
    if shown == 0:
        return "The method gave no embeddings, so there is no map."
    which = f"All {shown:,} images" if shown >= len(run) else f"{shown:,} images at random"
    said = (
        f"{which}, placed by {gallery.projection}: near points look alike to the model; the axes "
        "and far distances mean nothing."
    )
    if run.n_known == 0:
        return said
    return f"{said} Circles are in known classes, triangles in {kind_of(run)[1]}."


def scores_table(run: RunFiles) -> str:
    scores = run.scores
    if scores is None:
        return ""
    named = [("all", "All"), ("known", "Known"), ("novel", "Novel")]
    more = [(k, k.replace("_", " ")) for k in scores if k not in ("all", "known", "novel")]
    if not run.names_given:  # nothing is known, so that nothing is novel
        named = named[:1]
        more = [("novel_classes", "classes")] + [
            (k, said) for k, said in more if not k.startswith(("known", "named", "novel"))
        ]
    rows = []
    for key, label in (*named, *more):
        value = scores.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        said = f"{value:,}" if isinstance(value, int) else f"{value:.1f}"
        rows.append(f'<tr><th scope="row">{escape(label)}</th><td>{said}</td></tr>')
    matching = "All, Known and Novel share one optimal matching of categories to labels."
    if not run.names_given:
        matching = "Groups are matched to labels one to one, in the best way that there is."
    return (
        '<section id="scores"><h2>Accuracy against your labels <span>percent</span></h2>'
        f'<div class="scroll"><table>{"".join(rows)}</table></div><p class="caption">'
        f"The labels were used for scoring only; the method never saw them. {matching}"
        "</p></section>"
    )


def rejected_table(run: RunFiles) -> str:
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
