"""How smooth the live page's gallery is, with a service that runs already, in a real browser.

    python -m benchmarks.gallery http://127.0.0.1:8000 STREAM

Opens all images of a stream, scrolls to the end of them and back in large steps and then some
screens in small ones, and prints the nodes in the document and the times between frames. Needs
Playwright and chromium.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import time

import httpx
from playwright.sync_api import sync_playwright

_SCROLL = """async ([steps, by]) => {
  const box = document.querySelector('.gallery'), frames = [];
  let most = 0, last = performance.now();
  for (let i = 0; i < steps; i += 1) {
    box.scrollTop = by > 0 ? box.scrollTop + by : ((i + 1) / steps) * box.scrollHeight;
    await new Promise((next) => requestAnimationFrame(next));
    const now = performance.now();
    frames.push(now - last);
    last = now;
    most = Math.max(most, document.querySelectorAll('*').length);
  }
  return [frames, most];
}"""


def main(url: str, stream: str) -> None:
    images = httpx.get(f"{url}/v1/streams/{stream}", timeout=60).json()["images"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(120_000)
        began = time.perf_counter()
        page.goto(f"{url}/#{stream}/images")
        page.locator(".cell img").first.wait_for()
        print(f"gallery: {images} images, first in sight after {time.perf_counter() - began:.1f} s")
        for told, steps, by in (("end to end", 100, 0), ("line by line", 200, 56)):
            page.evaluate("document.querySelector('.gallery').scrollTop = 0")
            frames, nodes = page.evaluate(_SCROLL, [steps, by])
            frames.sort()
            print(
                f"gallery: {told}: at most {nodes} nodes in the document; between frames "
                f"{statistics.median(frames):.0f} ms (median), "
                f"{frames[int(0.95 * len(frames))]:.0f} ms (95 %), {frames[-1]:.0f} ms (longest)"
            )
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
