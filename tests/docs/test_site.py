"""The documentation site builds without a warning, and its links lead somewhere."""

from __future__ import annotations

import html.parser
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import pytest

from tests.docs.blocks import ROOT
from ttgcd.cli import COMMANDS

pytest.importorskip("mkdocs")
pytest.importorskip("material")
pytest.importorskip("mkdocstrings")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    return target


class _Page(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        for key in ("href", "src"):
            if given.get(key):
                self.links.append(str(given[key]))
        if given.get("id"):
            self.anchors.add(str(given["id"]))


def read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def test_every_link_inside_the_site_leads_to_a_page_and_a_place_on_it(site: Path) -> None:
    pages = {path: read(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 20
    broken = []
    for path, page in pages.items():
        for link in page.links:
            target, anchor = urldefrag(urljoin(path.as_uri(), link))
            if urlparse(target).scheme != "file":
                continue
            file = Path(unquote(urlparse(target).path))
            file = file / "index.html" if file.is_dir() else file
            missing_place = anchor and file in pages and unquote(anchor) not in pages[file].anchors
            if not file.exists() or (missing_place and not anchor.startswith("__")):
                broken.append(f"{path.relative_to(site)} -> {link}")
    assert not broken


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe)[^>]+src=\"(https?:[^\"]+)", text)
        loaded += re.findall(r"<link[^>]+rel=\"stylesheet\"[^>]+href=\"(https?:[^\"]+)", text)
        assert not loaded, path
        # This is what the theme's script looks for to ask the repository's host for figures.
        assert 'data-md-component="source"' not in text


def test_the_reference_knows_every_command_and_the_public_names(site: Path) -> None:
    import ttgcd

    commands = (site / "commands" / "index.html").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert f"ttgcd {command}" in commands
    assert "--overwrite" in commands and "--severity" in commands
    assert "\n" + " " * len("ttgcd discover ") + "[--" in commands  # the usage is aligned
    api = (site / "api" / "index.html").read_text(encoding="utf-8")
    for name in ("discover", "load_vlm", "InputError"):
        assert name in ttgcd.__all__ and f"ttgcd.{name}" in api


def test_notebooks_are_pages_with_their_pictures(site: Path) -> None:
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    assert len(notebooks) >= 2
    for path in notebooks:
        page = (site / "notebooks" / path.stem / "index.html").read_text(encoding="utf-8")
        assert "Output of the cell above" in page or path.stem != "photos"
        title = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        assert title.splitlines()[0].lstrip("# ") in page
