"""Tables as text, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable

from ttgcd.bench.paper_table import Block, Cell, Line, Table

FORMATS = ("text", "markdown", "latex", "csv")
CSV_COLUMNS = (
    *("block", "method", "answers", "passes", "column", "mean", "std", "seeds", "streams"),
    *("partial", "paper", "paper_std", "difference", "warnings"),
)


def render(table: Table, form: str = "text") -> str:
    """A table in one of ``FORMATS``."""
    writers: dict[str, Callable[[Table], str]] = {
        "text": _text,
        "markdown": _markdown,
        "latex": _latex,
        "csv": _csv,
    }
    return writers[form](table)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _ours(cell: Cell, plus_minus: str = " ±") -> str:
    if math.isnan(cell.mean):
        return ""
    spread = "" if math.isnan(cell.std) else f"{plus_minus}{cell.std:.2f}"
    return f"{cell.mean:.2f}{spread}{'†' if cell.partial else ''}"


def _difference(cell: Cell) -> str:
    return "" if math.isnan(cell.difference) else f"{cell.difference:+.2f}"


def _answers(line: Line) -> str:
    if line.passes is None:
        return ""
    return f"{line.answers}, {line.passes} pass{'' if line.passes == 1 else 'es'}"


def _grid(block: Block, bold: Callable[[str], str]) -> list[list[str]]:
    """Header and lines as strings: for every column ours, the paper's and the difference."""
    if not block.measured:
        return _published_grid(block, bold)
    has_paper = any(not math.isnan(c.paper) for line in block.lines for c in line.cells)
    header = ["method", "answers"]
    for column in block.columns:
        header += [column, "paper", "diff"] if has_paper else [column]
    grid = [header]
    for line in block.lines:
        texts = [line.label, _answers(line)]
        for cell in line.cells:
            ours, paper = _ours(cell), _number(cell.paper)
            texts.append(bold(ours) if cell.best and ours else ours)
            if has_paper:
                texts += [bold(paper) if cell.paper_best else paper, _difference(cell)]
        grid.append(texts)
    return grid


def _published_grid(block: Block, bold: Callable[[str], str]) -> list[list[str]]:
    """A benchmark on which nothing was measured: the paper's figures alone."""
    told = [
        place
        for place in range(len(block.columns))
        if any(not math.isnan(line.cells[place].paper) for line in block.lines)
    ]
    grid = [["method", "", *(f"{block.columns[place]}, paper" for place in told)]]
    for line in block.lines:
        cells = [line.cells[place] for place in told]
        texts = [bold(_number(c.paper)) if c.paper_best else _number(c.paper) for c in cells]
        grid.append([line.label, "", *texts])
    return grid


def _text(table: Table) -> str:
    lines = [table.title, "=" * len(table.title), table.question, ""]
    lines += [f"!!! {warning}" for warning in table.warnings]
    for block in table.blocks:
        grid = _grid(block, lambda text: f"*{text}*")
        widths = [max(len(row[i]) for row in grid) for i in range(len(grid[0]))]
        lines += ["", block.title, "-" * len(block.title)]
        for row in grid:
            first = [text.ljust(width) for text, width in zip(row[:2], widths[:2])]
            rest = [text.rjust(width) for text, width in zip(row[2:], widths[2:])]
            lines.append("  ".join(first + rest).rstrip())
    lines += ["", "*best* of a column; mean ± standard deviation over seeds; diff = ours - paper."]
    lines += [
        "answers: 'arrival' gives an id as the sample passes, 'end' only after the whole stream."
    ]
    return "\n".join(lines + table.notes) + "\n"


def _markdown(table: Table) -> str:
    lines = [f"### {table.title}", "", table.question, ""]
    for warning in table.warnings:
        lines += [f"> **{warning}**", ""]
    for block in table.blocks:
        grid = _grid(block, lambda text: f"**{text}**")
        lines += [f"**{block.title}**", ""]
        lines.append("| " + " | ".join(grid[0]) + " |")
        lines.append("|---|---|" + "---:|" * (len(grid[0]) - 2))
        lines += ["| " + " | ".join(row) + " |" for row in grid[1:]]
        lines.append("")
    lines += ["Best in bold; mean ± standard deviation over seeds; diff = ours - paper.", ""]
    lines += [f"- {note}" for note in table.notes]  # a list only behind an empty line
    return "\n".join(lines) + "\n"


def _latex(table: Table) -> str:
    def escape(text: str) -> str:
        for character in "&%$#_":
            text = text.replace(character, "\\" + character)
        return text.replace("±", r"$\pm$").replace("†", r"$^\dagger$").replace("^-", r"\^{}-")

    lines = [f"% {warning}" for warning in table.warnings]
    for block in table.blocks:
        grid = _grid(block, lambda text: f"\\textbf{{{text}}}")
        caption = escape(f"{table.title}: {block.title}. {' '.join(table.warnings)}").strip()
        lines += [
            r"\begin{table}[t]",
            r"\centering",
            f"\\caption{{{caption}}}",
            f"\\begin{{tabular}}{{ll{'r' * (len(grid[0]) - 2)}}}",
            r"\toprule",
            " & ".join(escape(text) for text in grid[0]) + r" \\",
            r"\midrule",
            *(" & ".join(escape(text) for text in row) + r" \\" for row in grid[1:]),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    return "\n".join(lines) + "\n"


def _csv(table: Table) -> str:
    """One line per figure, easy to read back."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for block in table.blocks:
        for line in block.lines:
            for column, cell in zip(block.columns, line.cells):
                writer.writerow(
                    [
                        block.title,
                        line.label,
                        line.answers,
                        "" if line.passes is None else line.passes,
                        column,
                        _number(cell.mean),
                        _number(cell.std),
                        cell.seeds,
                        cell.streams,
                        int(cell.partial),
                        _number(cell.paper),
                        _number(cell.paper_std),
                        _difference(cell),
                        "; ".join(table.warnings),
                    ]
                )
    return out.getvalue()
