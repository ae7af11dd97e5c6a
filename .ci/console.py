"""Tests the page of races in a browser, from its file. `.ci/console` starts it with CHROMIUM and AXE."""

import contextlib
import os
from pathlib import Path

from playwright.sync_api import sync_playwright

RACES = Path(__file__).resolve().parents[1] / "docs" / "races"
STORIES = ["five-users", "lost-answers", "last-item", "flash-sale", "late-delete", "two-leaders", "one-hundred"]
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND"]
# How long a story may take on a busy machine. Nothing is concluded from how long it does take.
PATIENCE_MS = 120_000
OWN = "refused by its own first send, which was applied"


def demand(is_so, otherwise):
    if not is_so:
        raise SystemExit(f"FAILED: {otherwise}")


class Browser:
    """Chromium. No page may log an error, throw, or load anything but the files of its folder."""

    def __init__(self, chromium):
        self.chromium = chromium
        self.complaints = []

    @contextlib.contextmanager
    def page(self, story="", **options):
        context = self.chromium.new_context(**{"viewport": DESKTOP, "color_scheme": "light"} | options)
        context.set_default_timeout(PATIENCE_MS)
        context.on("request", self.asked)
        context.on("weberror", lambda error: self.complaints.append(f"thrown: {error.error}"))
        context.on("console", lambda message: self.complaints.append(f"logged: {message.text}"))
        page = context.new_page()
        page.goto(f"{(RACES / 'index.html').as_uri()}#{story}")
        page.wait_for_selector("[data-story-button]", state="attached")
        yield page
        context.close()
        demand(not self.complaints, "the page complained:\n  " + "\n  ".join(self.complaints))

    def asked(self, request):
        if not request.url.startswith((RACES.as_uri(), "data:")):
            self.complaints.append(f"loaded from elsewhere: {request.url}")


def choose(page, story, **settings):
    page.evaluate("story => { location.hash = `#${story}`; }", story)
    page.wait_for_selector(f'[data-story="{story}"]')
    for name, value in ({"speed": "all"} | settings).items():
        page.select_option(f"#choose-{name}", value)


def played(page, story, **settings):
    """Plays a story to its end and gives the contents of the page."""
    choose(page, story, **settings)
    page.click('[data-action="play"]')
    page.wait_for_selector(f'[data-story="{story}"][data-story-state="ended"]')
    return page.evaluate(SHOWN)


# The counters of each side as numbers, whether the sides are good, and the verdicts.
SHOWN = """() => {
  const counters = {}, good = {};
  for (const one of document.querySelectorAll('[data-counter]')) {
    const { side, counter } = one.dataset;
    (counters[side] ??= {})[counter] = Number(one.textContent.replaceAll(',', ''));
  }
  for (const one of document.querySelectorAll('[data-verdict-side]')) good[one.dataset.verdictSide] = one.dataset.good;
  const said = [...document.querySelectorAll('.judgement')].map((one) => one.innerText.replaceAll('\\n', ' ')).join(' | ');
  return { counters, good, said };
}"""


def every_play_is_shown(browser):
    """The tests in dev/console/tests/ check the plays. Here their numbers and their verdicts are on the page."""
    with browser.page() as page:
        names = page.eval_on_selector_all("[data-story-button]", "all => all.map(one => one.dataset.storyButton)")
        demand(names == STORIES, f"the stories are {names}")
        for story in STORIES:
            shown = played(page, story)
            print(f"  {story}: {shown['said']}", flush=True)
            wrong = [side for side, good in shown["good"].items() if good != "true"]
            demand(wrong == ["naive"] * (story != "one-hundred"), f"{story}: {shown['said']}")
            for lost in values(page, "lostAnswers"):
                for seed in values(page, "seed"):
                    shown = played(page, story, lostAnswers=lost, seed=seed)
                    for side, counters in shown["counters"].items():
                        name = f"{story}, {lost} % lost, seed {seed}: {side}: {counters}"
                        demand(all(value == value for value in counters.values()), name)
                        right = shown["good"][side] == "true" and counters["appliedTwice"] == 0
                        demand(right or side == "naive", f"{name}: {shown['said']}")
                    drawn(page, story)


def values(page, name):
    return page.eval_on_selector_all(f"#choose-{name} option", "all => all.map(one => one.value)")


def drawn(page, story):
    """The time line of each side has marks. Their colours are strong; those of its frame and its text are not."""
    for canvas in page.query_selector_all("[data-side-panel] canvas"):
        strong = canvas.evaluate("""canvas => {
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          let strong = 0;
          for (let at = 0; at < data.length; at += 4) {
            const colour = data.slice(at, at + 3);
            if (data[at + 3] > 200 && Math.max(...colour) - Math.min(...colour) > 60) strong += 1;
          }
          return strong;
        }""")
        demand(strong > 20, f"{story}: a time line is empty: {strong}")


def every_mark_is_told_and_read_by_keyboard(browser):
    with browser.page() as page:
        shown = played(page, "lost-answers")
        demand("Home" in page.inner_text(".keys"), "the legend does not explain the keys")
        panel = page.locator('[data-side-panel="naive"]')
        hint, canvas = panel.locator(".hint"), panel.locator("canvas")
        panel.locator(".happened summary").click()
        panel.locator(".lines:not(:empty)").wait_for()
        lines = panel.locator(".lines").inner_text()
        twice = shown["counters"]["naive"]["appliedTwice"]
        for line in (f"hears: {OWN}", f"applied twice: {twice} now"):
            demand(line in lines, f"no line says {line!r}:\n{lines}")
        demand(hint.get_attribute("aria-live") == "polite", "what the marks mean is not announced")
        canvas.focus()
        before = canvas.evaluate("one => one.toDataURL()")
        page.keyboard.press("End")
        demand(canvas.evaluate("one => one.toDataURL()") != before, "the mark that is read is not shown")
        last, read = hint.inner_text(), []
        page.keyboard.press("Home")
        while (said := hint.inner_text()) != last and len(read) < 1000:
            read.append(said)
            page.keyboard.press("ArrowRight")
        demand(said == last and len(set(read)) > 20, f"from the first mark to the last one, the keyboard reads {read}")
        for part in (OWN, f"applied twice: {twice} now", "answer lost", "sent again"):
            demand(any(part in said for said in read), f"no mark says {part!r}: {read}")
        page.keyboard.press("ArrowLeft")
        demand(hint.inner_text() == read[-1], "the left arrow does not go back")
        page.keyboard.press("ArrowUp")
        demand(" user 1 " in hint.inner_text(), f"the up arrow does not lead to another client: {hint.inner_text()}")
        page.keyboard.press("Escape")
        demand(canvas.evaluate("one => one.toDataURL()") == before, "a ring stays after Escape")


def axe_finds_nothing(browser):
    for scheme in ("light", "dark"):
        for viewport in (DESKTOP, PHONE):
            with browser.page(color_scheme=scheme, viewport=viewport) as page:
                page.evaluate(Path(os.environ["AXE"]).read_text())
                where = f"{scheme}, {viewport['width']} wide"
                violations(page, f"before a story, {where}")
                for story in ("lost-answers", "one-hundred"):
                    played(page, story)
                    width = page.evaluate("document.documentElement.scrollWidth")
                    demand(width <= viewport["width"], f"{story}, {where}: the page is {width} wide")
                    for summary in page.query_selector_all("details:not([open]) > summary"):
                        summary.click()
                    violations(page, f"{story}, {where}")


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
        for check in (
            every_play_is_shown,
            every_mark_is_told_and_read_by_keyboard,
            axe_finds_nothing,
        ):
            print(f"{check.__name__.replace('_', ' ')} …", flush=True)
            check(browser)
    print("the page of races is as it should be")


if __name__ == "__main__":
    main()
