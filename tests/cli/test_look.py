"""Looking at a report: opened where there is a browser, served to this machine where not."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from ttgcd.cli import look, main


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "report.html").write_text("<title>found</title>")
    return tmp_path


def test_a_browser_gets_the_page(out: Path, monkeypatch, capsys) -> None:
    opened = []
    monkeypatch.setenv("BROWSER", "x")
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    assert main(["look", str(out)]) == 0
    assert opened == [(out / "report.html").as_uri()]


def test_without_a_browser_it_is_served_to_this_machine_alone(out: Path) -> None:
    server, path = look.make_server(out, 0)
    assert path == "report.html"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    try:
        assert server.server_address[0] == "127.0.0.1"
        with urllib.request.urlopen(address + "report.html") as answer:
            assert b"found" in answer.read()
        for path, host in (("report.html", "evil.example"), ("", None), ("../secret", None)):
            request = urllib.request.Request(address + path)
            if host is not None:
                request.add_header("Host", host)
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(request)
    finally:
        server.shutdown()
        server.server_close()


def test_the_originals_are_served_with_it_and_nothing_beside_them(tmp_path: Path) -> None:
    out, photos = tmp_path / "my run", tmp_path / "photos"
    for folder in (out, photos):
        folder.mkdir()
    (out / "report.html").write_text("found")
    (out / "run.json").write_text(json.dumps({"input": {"folder": str(photos)}}))
    (photos / "a.jpg").write_bytes(b"picture")
    (photos / "letter.txt").write_text("private")
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    (photos / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    server, path = look.make_server(out, 0)
    assert path == "my%20run/report.html"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    try:
        assert urllib.request.urlopen(address + path).read() == b"found"
        assert urllib.request.urlopen(address + "photos/a.jpg").read() == b"picture"
        for hidden in ("photos/letter.txt", "secret.jpg", "photos/link.jpg", "photos/"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(address + hidden)
    finally:
        server.shutdown()
        server.server_close()


def test_no_browser_and_ctrl_c(out: Path, monkeypatch, capsys) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")

    def stopped(self) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", stopped)
    assert main(["look", str(out)]) == 0
    assert "http://127.0.0.1:" in capsys.readouterr().out


def test_what_is_no_finished_run_is_refused(tmp_path: Path, capsys) -> None:
    assert main(["look", str(tmp_path / "nowhere")]) == 2
    assert "no such folder" in capsys.readouterr().err
    (tmp_path / ".progress").mkdir()
    assert main(["look", str(tmp_path)]) == 2
    assert "go on with --resume" in capsys.readouterr().err


def test_runs_that_are_here_are_named_where_none_was(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "found").mkdir()
    assert main(["look"]) == 2
    assert "such as" not in capsys.readouterr().err
    (tmp_path / "found" / "report.html").write_text("")
    assert main(["look"]) == 2
    assert "give the --out of a run, such as found" in capsys.readouterr().err
    assert main(["look", "."]) == 2
    assert "no run in '.': give the --out of one, such as found" in capsys.readouterr().err
