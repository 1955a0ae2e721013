"""Make ``docs/img/demo.gif``: a run in the terminal, then its report.

    python docs/moving_picture.py --browser /usr/bin/chromium

Nothing in it is staged: the command is run, what it prints is drawn with the waiting cut short, and
the report it left is photographed in a browser. Needs ``pip install ttgcd[figures] playwright``.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

SIZE = (840, 500)
INK, PAPER, FAINT, PROMPT = "#d8dee9", "#1d232e", "#7d8799", "#8fd3a8"
FONT_SIZE, LINE = 14, 20
COMMANDS = (
    "ttgcd data prepare iconshift pictures --domain handdrawn",
    "ttgcd discover pictures --known @pictures-known.txt --novel 39 --model mini --out found",
    "ttgcd look found",
)
#: phases whose lines are written over, as on a terminal
PHASES = ("stream:", "re-align:", "pictures:", "encode:")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "img" / "demo.gif")
    parser.add_argument("--browser", help="path of a Chromium (default: playwright's own)")
    args = parser.parse_args()
    frames: list[tuple[Image.Image, int]] = []
    screen: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            frames += typed(screen, command)
            if not command.startswith("ttgcd look"):
                frames += printed(screen, run(command, folder))
        frames += photographed(Path(folder) / "found" / "report.html", args.browser)
    save(frames, args.out)
    print(f"{args.out}: {len(frames)} frames, {args.out.stat().st_size / 1e6:.1f} MB")


def run(command: str, folder: str) -> list[str]:
    """What a command prints, standard error and output as they come."""
    done = subprocess.run(
        [sys.executable, "-m", *command.split()],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def typed(screen: list[tuple[str, str]], command: str) -> list[tuple[Image.Image, int]]:
    """The command appears word by word."""
    frames = []
    words = command.split(" ")
    screen.append(("$ ", PROMPT))
    for number in range(len(words)):
        screen[-1] = ("$ " + " ".join(words[: number + 1]), PROMPT)
        frames.append((terminal(screen), 130))
    frames[-1] = (frames[-1][0], 600)
    return frames


def printed(screen: list[tuple[str, str]], lines: list[str]) -> list[tuple[Image.Image, int]]:
    frames = []
    for line in lines:
        phase = next((phase for phase in PHASES if line.startswith(phase)), None)
        if phase and screen[-1][0].startswith(phase):
            screen[-1] = (line, FAINT)
        else:
            screen.append((line, FAINT if phase or line.startswith("note:") else INK))
        frames.append((terminal(screen), 160))
    frames[-1] = (frames[-1][0], 2500)
    return thinned(frames, 40)


def thinned(frames: list[tuple[Image.Image, int]], most: int) -> list[tuple[Image.Image, int]]:
    """At most so many, the last among them: waiting is not worth watching."""
    step = max(1, len(frames) // most)
    return [*frames[:-1:step], frames[-1]]


def terminal(screen: list[tuple[str, str]]) -> Image.Image:
    from matplotlib import font_manager

    font = ImageFont.truetype(font_manager.findfont("DejaVu Sans Mono"), FONT_SIZE)
    image = Image.new("RGB", SIZE, PAPER)
    draw = ImageDraw.Draw(image)
    width = int((SIZE[0] - 28) / font.getlength("m"))
    rows = [
        (text[start : start + width], colour)
        for text, colour in screen
        for start in range(0, max(len(text), 1), width)
    ]
    for number, (text, colour) in enumerate(rows[-((SIZE[1] - 24) // LINE) :]):
        draw.text((14, 12 + number * LINE), text, colour, font)
    return image


def photographed(report: Path, browser: str | None) -> list[tuple[Image.Image, int]]:
    """The report from top to bottom."""
    from playwright.sync_api import sync_playwright

    frames = []
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1260, "height": 750})
        page.goto(report.as_uri())
        page.wait_for_timeout(1000)
        for number, offset in enumerate((0, 0, 250, 500, 750, 1000, 1250, 1500)):
            page.evaluate(f"window.scrollTo(0, {offset})")
            page.wait_for_timeout(400)
            shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            frames.append(
                (shot.resize(SIZE, Image.Resampling.LANCZOS), 2000 if number < 2 else 700)
            )
        chromium.close()
    frames[-1] = (frames[-1][0], 3000)
    return frames


def save(frames: list[tuple[Image.Image, int]], path: Path) -> None:
    """Few colours: the picture must load at once."""
    images = [image.quantize(64, method=Image.Quantize.MEDIANCUT) for image, _ in frames]
    path.parent.mkdir(exist_ok=True)
    images[0].save(
        path,
        save_all=True,
        append_images=images[1:],
        duration=[duration for _, duration in frames],
        loop=0,
        optimize=True,
    )


if __name__ == "__main__":
    main()
