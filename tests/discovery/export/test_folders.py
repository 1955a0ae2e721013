"""Exports into folders: links, copies, moves and the way back."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tests.discovery.edits.runs import answers
from tests.discovery.export.photos import photo_run
from ttgcd.discovery.edits import Edit, EditedFolder
from ttgcd.discovery.export import export, move_back
from ttgcd.discovery.export import moving as moving_module
from ttgcd.discovery.export.placing import Places, folder_names, safe_name
from ttgcd.errors import InputError


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder and the hash of what is in it."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("how", ["link", "symlink", "copy"])
def test_every_image_is_in_the_folder_of_its_category(tmp_path: Path, how: str) -> None:
    photos, out = photo_run(tmp_path)
    before = tree(photos)
    done = export(out, "folders", tmp_path / "sorted", how=how)
    assert done.images == 12 and tree(photos) == before
    for image, (_, _, name) in answers(out).items():
        placed = tmp_path / "sorted" / name / Path(image).name
        assert placed.read_bytes() == (photos / image).read_bytes()
        assert placed.is_symlink() == (how == "symlink")
        assert os.path.samefile(placed, photos / image) == (how != "copy")


def test_sub_folders_are_kept_on_request(tmp_path: Path) -> None:
    _, out = photo_run(tmp_path)
    export(out, "folders", tmp_path / "sorted", keep_folders=True)
    for image, (_, _, name) in answers(out).items():
        assert (tmp_path / "sorted" / name / image).exists()


def test_images_of_one_name_are_told_apart(tmp_path: Path) -> None:
    places = Places(keep_folders=False)
    placed = [str(places.place("cat", image)) for image in ("a/1.jpg", "b/1.jpg", "c/1.JPG")]
    assert placed == ["cat/1.jpg", "cat/1-2.jpg", "cat/1-3.JPG"]


def test_names_of_categories_become_folders_that_every_system_takes() -> None:
    names = [
        (1, "AC/DC"),
        (2, "ac_dc"),
        (3, "../../etc"),
        (4, "nul"),
        (5, "…"),
        (6, "."),
        (7, "é" * 200),
    ]
    folders = folder_names(names)
    assert len({folder.casefold() for folder in folders.values()}) == len(names)
    for folder in folders.values():
        assert "/" not in folder and "\\" not in folder and folder not in (".", "..")
        assert len(folder.encode()) <= 255
    assert folders[6] == "category 6" and safe_name("a\0b\n", "x") == "ab"


def test_ids_cannot_lead_out_of_the_target() -> None:
    place = Places(keep_folders=True).place("cat", "../../../etc/passwd")
    assert ".." not in place.parts and place.parts[0] == "cat"


def test_hidden_categories_stay_behind_unless_asked_for(tmp_path: Path) -> None:
    _, out = photo_run(tmp_path)
    EditedFolder(out).edit(Edit("hide", category=3))
    hidden = sum(answer[0] == 3 for answer in answers(out).values())
    done = export(out, "folders", tmp_path / "some")
    assert done.images == 12 - hidden and "hidden" in done.notes[0]
    assert export(out, "folders", tmp_path / "all", hidden=True).images == 12


def test_5000_files_that_were_moved_go_back_with_equal_hashes(tmp_path: Path) -> None:
    photos, out = photo_run(tmp_path, n=5000)
    before = tree(photos)
    export(out, "folders", tmp_path / "sorted", how="move")
    assert tree(photos) == {}
    assert sorted(h for p, h in tree(tmp_path / "sorted").items() if "ttgcd-moved" not in p) == (
        sorted(before.values())
    )
    assert move_back(tmp_path / "sorted") == 5000
    assert tree(photos) == before and not (tmp_path / "sorted").exists()


@pytest.mark.parametrize("stop", [0, 1, 2, 7, 23])
@pytest.mark.parametrize("links", [True, False])
def test_an_interrupted_move_goes_back_from_every_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int, links: bool
) -> None:
    photos, out = photo_run(tmp_path)
    before, calls = tree(photos), 0

    class Killed(BaseException):
        pass

    def counting(name: str, real):  # type: ignore[no-untyped-def]
        def call(*args, **options):  # type: ignore[no-untyped-def]
            nonlocal calls
            if calls == stop:
                raise Killed
            calls += 1
            if name == "link" and not links:
                raise OSError(18, "cross-device link")
            return real(*args, **options)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(moving_module.os, "link", counting("link", os.link))
        patch.setattr(Path, "unlink", counting("unlink", Path.unlink))
        with pytest.raises(Killed):
            export(out, "folders", tmp_path / "sorted", how="move")
    held = {**tree(photos), **tree(tmp_path / "sorted")}
    assert set(before.values()) <= set(held.values())  # no image was without a name
    move_back(tmp_path / "sorted")
    assert tree(photos) == before and not (tmp_path / "sorted").exists()


def test_a_move_back_never_overwrites_a_new_file(tmp_path: Path) -> None:
    photos, out = photo_run(tmp_path)
    export(out, "folders", tmp_path / "sorted", how="move")
    (photos / "img-00.png").write_bytes(b"new")
    with pytest.raises(InputError, match="another file is there"):
        move_back(tmp_path / "sorted")
    assert (photos / "img-00.png").read_bytes() == b"new"
    (photos / "img-00.png").unlink()
    move_back(tmp_path / "sorted")
    assert len(tree(photos)) == 12


def test_a_target_that_exists_or_lies_in_the_way_is_refused(tmp_path: Path) -> None:
    photos, out = photo_run(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    refused = {
        tmp_path / "there": "exists",
        tmp_path / "dangling": "exists",
        photos / "sorted": "inside",
        out / "sorted": "inside",
        tmp_path / "no" / "such": "no folder",
    }
    before = tree(tmp_path)
    for target, words in refused.items():
        with pytest.raises(InputError, match=words):
            export(out, "folders", target)
    assert tree(tmp_path) == before


def test_images_that_are_gone_are_named_and_nothing_is_left(tmp_path: Path) -> None:
    photos, out = photo_run(tmp_path)
    (photos / "img-00.png").unlink()
    with pytest.raises(InputError, match=r"1 images .* 'img-00.png'.*source="):
        export(out, "folders", tmp_path / "sorted")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found", "photos"]


def test_a_run_that_does_not_know_its_images_asks_for_them(tmp_path: Path) -> None:
    photos, out = photo_run(tmp_path)
    (out / "run.json").write_text("{}", "utf-8")
    with pytest.raises(InputError, match="source="):
        export(out, "folders", tmp_path / "sorted")
    assert export(out, "folders", tmp_path / "sorted", photos).images == 12
