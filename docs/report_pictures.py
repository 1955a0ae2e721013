"""The pictures of docs/report.md from the folder of a run: python docs/report_pictures.py OUT.

Needs Playwright and chromium.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "img"


def main(out: Path) -> None:
    """Look at the page as a laptop and as a phone would."""
    address = (out / "report.html").resolve().as_uri()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        laptop = browser.new_page(viewport={"width": 1280, "height": 800})
        laptop.goto(address)
        save(laptop, "report-laptop.png")
        laptop.set_viewport_size({"width": 1280, "height": 1180})
        laptop.evaluate("document.querySelector('#map').scrollIntoView()")
        save(laptop, "report-map-and-health.png")
        phone = browser.new_page(viewport={"width": 390, "height": 844})
        phone.goto(address)
        save(phone, "report-phone.png")
        browser.close()


def save(page: Page, name: str) -> None:
    page.wait_for_timeout(1000)  # pictures come when they are near the screen
    page.screenshot(path=IMAGES / name)
    print(IMAGES / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
