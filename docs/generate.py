"""Pages of the documentation that are made when it is built, so that they cannot be out of date.

A hook of mkdocs (``hooks`` in mkdocs.yml): the command reference comes from the parsers, the
notebooks from ``notebooks/*.ipynb``, and a page that nobody put in the navigation is still found.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
NOTEBOOKS = ROOT / "notebooks"
COMMANDS_MARK = "<!-- commands -->"


def on_config(config: Any) -> Any:
    """Add pages that the navigation does not name."""
    named = json.dumps(config.nav)
    docs = Path(config.docs_dir)
    pages = [path.relative_to(docs).as_posix() for path in sorted(docs.rglob("*.md"))]
    forgotten = [page for page in pages if f'"{page}"' not in named]
    if forgotten:
        config.nav.append({"More": forgotten})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the notebooks as pages, with the pictures they show."""
    from mkdocs.structure.files import File

    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        text, pictures = notebook_page(path)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    if COMMANDS_MARK in markdown:
        return markdown.replace(COMMANDS_MARK, command_reference())
    return markdown


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The link to the repository is a link: it does not ask the host how many stars there are."""
    return output.replace(' data-md-component="source"', "")


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """The same for pages that are no page of ours, such as 404."""
    return output_content.replace(' data-md-component="source"', "")


def command_reference() -> str:
    """Every command with its usage and options."""
    os.environ["COLUMNS"] = "78"  # argparse wraps at the width of the terminal
    from ttgcd.cli import full_parser
    from ttgcd.cli.completion import walk

    return "\n\n".join(_command(path, parser) for path, parser in walk(full_parser()) if path)


def _command(path: tuple[str, ...], parser: argparse.ArgumentParser) -> str:
    lines = [f"{'##' if len(path) == 1 else '###'} ttgcd {' '.join(path)}", ""]
    if parser.description:
        lines += [parser.description, ""]
    first, *others = parser.format_usage().removeprefix("usage: ").rstrip().splitlines()
    usage = "\n".join([first, *(line.removeprefix(" " * len("usage: ")) for line in others)])
    lines += ["```text", usage, "```", ""]
    rows = list(_rows(parser))
    if rows:
        lines += ["| argument | |", "|---|---|", *rows]
    if parser.epilog:
        lines += ["", parser.epilog]
    return "\n".join(lines)


def _rows(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                yield f"| `{choice.dest}` | {_cell(choice.help)} |"
            continue
        value = "" if action.nargs == 0 else f" {_value(action)}"
        if action.option_strings:
            name = ", ".join(f"`{option}{value}`" for option in action.option_strings)
        else:
            name = f"`{action.metavar or action.dest}`"
        about = (action.help or "") % {**vars(action), "prog": parser.prog}
        yield f"| {name} | {_cell(about)} |"


def _value(action: argparse.Action) -> str:
    if action.choices:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return str(action.metavar or action.dest.upper())


def _cell(text: str | None) -> str:
    """Text inside a table: no column may end, and nothing may look like a tag."""
    return (text or "").replace("|", "\\|").replace("<", "&lt;")


def notebook_page(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook with its stored outputs as Markdown, and its pictures by file name."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{path.stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode("".join(data["image/png"]))
                parts.append(f"![Output of the cell above]({name})")
                continue
            text = "".join(output.get("text", data.get("text/plain", [])))
            if text.strip():
                parts.append(f"```text\n{text.rstrip()}\n```")
    link = f"notebooks/{path.name}"
    parts.append(f"*This page is the notebook `{link}` of the repository; a test runs it.*")
    return "\n\n".join(parts) + "\n", pictures
