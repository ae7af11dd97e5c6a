"""Tests the page of races in a browser, from its file. `.ci/console` starts it with CHROMIUM and AXE."""

import contextlib
import os
from pathlib import Path

from playwright.sync_api import sync_playwright

RACES = Path(__file__).resolve().parents[1] / "docs" / "races"
STORIES = ["one-answer", "five-users", "last-item", "flash-sale", "late-delete", "two-leaders", "one-hundred"]
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND"]
# How long a step may take on a busy machine. Nothing is concluded from how long it does take.
PATIENCE_MS = 120_000


def demand(is_so, otherwise):
    if not is_so:
        raise SystemExit(f"FAILED: {otherwise}")


class Browser:
    """Chromium. No page may log an error, throw, or load anything but the files of its folder."""

    def __init__(self, chromium):
        self.chromium = chromium
        self.complaints = []

    @contextlib.contextmanager
    def page(self, **options):
        context = self.chromium.new_context(**{"viewport": DESKTOP, "color_scheme": "light"} | options)
        context.set_default_timeout(PATIENCE_MS)
        context.on("request", self.asked)
        context.on("weberror", lambda error: self.complaints.append(f"thrown: {error.error}"))
        context.on("console", lambda message: self.complaints.append(f"logged: {message.text}"))
        page = context.new_page()
        page.goto((RACES / "index.html").as_uri())
        page.locator(f"#{STORIES[-1]} .chart svg").first.wait_for()
        yield page
        context.close()
        demand(not self.complaints, "the page complained:\n  " + "\n  ".join(self.complaints))

    def asked(self, request):
        if not request.url.startswith((RACES.as_uri(), "data:")):
            self.complaints.append(f"loaded from elsewhere: {request.url}")


# Of a story: whether each side is good, its counters as numbers, its verdict, and how much its time line draws.
SHOWN = """(story) => Object.fromEntries([...story.querySelectorAll('.side')].map((side) => [side.dataset.side, {
  good: side.dataset.good === 'true', said: side.querySelector('.verdict').textContent,
  counters: Object.fromEntries([...story.querySelectorAll(`[data-of="${side.dataset.side}"]`)]
    .map((cell) => [cell.dataset.counter, Number(cell.textContent.replaceAll(',', ''))])),
  drawn: [...side.querySelectorAll('.chart path')].reduce((all, path) => all + path.getAttribute('d').length, 0),
}]))"""


def every_play_is_shown(browser):
    """The tests in dev/console/tests/ check the plays. Here their numbers, verdicts and time lines are on the page."""
    with browser.page() as page:
        names = page.eval_on_selector_all("main > section", "all => all.map(one => one.id)")
        demand(names == STORIES, f"the stories are {names}")
        page.locator(f"#{STORIES[0]}.playing").wait_for()  # at once
        for name in STORIES:
            story = page.locator(f"#{name}")
            shown = story.evaluate(SHOWN)
            print(f"  {name}: {' | '.join(side['said'] for side in shown.values())}", flush=True)
            wrong = [side for side, of in shown.items() if not of["good"]]
            demand(wrong == ["naive"] * (name != "one-hundred"), f"{name}: {shown}")
            for folded in story.locator("details:has(select)").all():
                folded.locator("summary").click()
            for lost in values(story, "lostAnswers"):
                for seed in values(story, "seed"):
                    story.locator(".side:last-child .chart svg").wait_for()
                    for side, of in story.evaluate(SHOWN).items():
                        where = f"{name}, {lost} % lost, seed {seed}: {side}: {of}"
                        demand(all(value == value for value in of["counters"].values()) and of["drawn"] > 200, where)
                        demand(side == "naive" or of["good"] and of["counters"]["appliedTwice"] == 0, where)


def values(story, name):
    """Chooses each value in turn. There is none to choose for a story with one play."""
    select = story.locator(f"select[name={name}]")
    for value in select.locator("option").evaluate_all("all => all.map(one => one.value)") or [None]:
        if value is not None:
            select.select_option(value)
        yield value


def the_keyboard_reaches_what_happened_in_words(browser):
    with browser.page(reduced_motion="reduce") as page:
        demand("loses the answer" in page.locator("#one-answer pre").first.inner_text(), "a short story is not told at once")
        side = page.locator("#five-users [data-side=naive]")
        for _ in range(100):
            page.keyboard.press("Tab")
            if side.locator("summary").evaluate("one => one === document.activeElement"):
                break
        page.keyboard.press("Enter")
        lines = side.locator("pre:not(:empty)").inner_text()
        for line in ("loses the answer", " again", "hears: refused by its own first send, which was applied", "applied twice: 1 now"):
            demand(line in lines, f"no line says {line!r}:\n{lines}")


def axe_finds_nothing(browser):
    for scheme in ("light", "dark"):
        for viewport in (DESKTOP, PHONE):
            with browser.page(color_scheme=scheme, viewport=viewport, reduced_motion="reduce") as page:
                page.evaluate(Path(os.environ["AXE"]).read_text())
                where = f"{scheme}, {viewport['width']} wide"
                violations(page, where)
                for summary in page.query_selector_all("details:not([open]) > summary"):
                    summary.click()
                violations(page, f"{where}, unfolded")
                width = page.evaluate("document.documentElement.scrollWidth")
                demand(width <= viewport["width"], f"{where}: the page is {width} wide")


def violations(page, where):
    """Every rule of axe counts, not just the serious ones. A page from a file cannot preload its style for axe."""
    page.wait_for_function("() => document.getAnimations().every((one) => one.playState !== 'running')")
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'], preload: false })")
    demand(found["passes"], f"axe checked nothing: {where}")
    said = [f"{one['impact']}: {one['help']} ({one['id']}): {node['html'][:200]}"
            for one in found["violations"] for node in one["nodes"]]
    demand(not said, f"axe, {where}:\n  " + "\n  ".join(said))


def main():
    with sync_playwright() as driver:
        browser = Browser(driver.chromium.launch(executable_path=os.environ["CHROMIUM"], args=FLAGS))
        for check in (every_play_is_shown, the_keyboard_reaches_what_happened_in_words, axe_finds_nothing):
            print(f"{check.__name__.replace('_', ' ')} …", flush=True)
            check(browser)
    print("the page of races is as it should be")


if __name__ == "__main__":
    main()
