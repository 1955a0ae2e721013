"""The pictures of the live page, of a service that is fed IconShift.

    python docs/live_pictures.py

Needs the extra ``serve``, Playwright and chromium. Everything that is seen was answered by the
embedded model in this run; the names were taken from what the page suggests.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.service.live_server import LiveServer
from ttgcd import Client
from ttgcd.datasets.iconshift import iconshift_classes, load_iconshift

IMAGES = Path(__file__).parent / "img"
DOMAIN, STREAM = "line", "icons"


def main() -> None:
    """Feed a stream, then look at it as a laptop and as a phone would."""
    with tempfile.TemporaryDirectory() as place:
        server = LiveServer(Path(place) / "state").start().ready()
        try:
            fill(server.url)
            look(server.url)
        finally:
            server.stop()


def fill(url: str) -> None:
    source, _ = load_iconshift(DOMAIN)
    known, novel = iconshift_classes()
    step = 37  # mixes the classes
    places = [(i * step) % len(source) for i in range(len(source))]
    images = [(source.id(p), bytes(source.read(p))) for p in places]  # type: ignore[arg-type]
    with Client(url) as client:
        client.create(STREAM, known=known, novel=len(novel), warmup=512, batch_size=64)
        for _ in client.send(STREAM, images, at_once=64):
            pass
        client.finish(STREAM)


def look(url: str) -> None:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        laptop = browser.new_page(viewport={"width": 1280, "height": 800})
        laptop.goto(f"{url}/#{STREAM}/wall")
        laptop.locator(".chip").nth(6).wait_for(timeout=120_000)
        for word in ("hourglass", "bell", "globe"):  # as suggested
            chip = laptop.get_by_role("button", name=f"{word}?", exact=True).first
            if chip.count():
                chip.click()
                laptop.locator(".card.novel .name", has_text=word).first.wait_for(timeout=60_000)
        laptop.wait_for_timeout(7000)  # until the notice is gone
        for place in (6, 8):  # two kinds of dice
            laptop.locator(".card.novel input[type=checkbox]").nth(place).check()
        laptop.evaluate("scrollTo(0, 0)")
        save(laptop, "live-wall.png")
        laptop.get_by_role("button", name="Clear").click()
        for tab in ("questions", "map", "figures", "settings", "images"):
            laptop.goto(f"{url}/#{STREAM}/{tab}")
            if tab == "map":
                laptop.get_by_text("draw around some").wait_for(timeout=120_000)
            save(laptop, f"live-{tab}.png", keep=tab in ("questions", "map"))
        phone = browser.new_page(
            viewport={"width": 390, "height": 844}, color_scheme="dark", has_touch=True
        )
        phone.goto(f"{url}/#{STREAM}/wall")
        phone.locator(".card").first.wait_for(timeout=60_000)
        save(phone, "live-phone.png")
        browser.close()


def save(page: Page, name: str, keep: bool = True) -> None:
    page.wait_for_timeout(1500)  # pictures come when they are near the screen
    folder = IMAGES if keep else Path(tempfile.gettempdir())
    page.screenshot(path=folder / name)
    print(folder / name)


if __name__ == "__main__":
    main()
