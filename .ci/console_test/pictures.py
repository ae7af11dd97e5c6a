"""Pictures of the page, small enough to be kept."""

import io

from browser import DESKTOP, PHONE, demand, ended, play
from live import curl
from PIL import Image

COLOURS = 128
MOST_BYTES = 200_000


def take(browser, folder):
    """The end of "Lost answers", the tables and the requests: desktop and phone, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    fill_tables(browser)
    for screen, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
        for scheme in ("light", "dark"):
            with browser.page(viewport=viewport, color_scheme=scheme) as page:
                play(page, "lost-answers")
                ended(page, "lost-answers")
                page.eval_on_selector("[data-story]" if screen == "desktop" else "[data-verdict]", SCROLL)
                keep(page, folder / f"console-{screen}-{scheme}.png")
                for part in ("tables", "requests"):
                    page.evaluate("part => { location.hash = `#${part}`; }", part)
                    page.wait_for_selector(f'[data-part="{part}"]:not([hidden])')
                    keep(page, folder / f"console-{part}-{screen}-{scheme}.png")


def fill_tables(browser):
    """Puts a row of each kind into the tables."""
    url = browser.about()["functionsUrl"]
    for device in ("lamp", "door"):
        curl(f"{url}/devices/{device}", "PUT", {"state": {"brightness": 50}})
        curl(f"{url}/devices/{device}/state", "PATCH", {"brightness": 51})
    curl(f"{url}/devices/door", "DELETE", None, "if-match: *")
    curl(f"{url}/products/chair", "PUT", {"stock": 3})
    order = {"userId": "ann", "lines": [{"productId": "chair", "quantity": 1}]}
    curl(f"{url}/orders", "POST", order, "idempotency-key: picture")
    curl(f"{url}/leases/controller", "PUT", {"holder": "ann", "ttlSeconds": 900})


SCROLL = "one => one.scrollIntoView({ block: 'start', behavior: 'instant' })"


def keep(page, path):
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    picture = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    demand(path.stat().st_size < MOST_BYTES, f"{path} has {path.stat().st_size} bytes")
    print(f"  {path}: {path.stat().st_size} bytes")
