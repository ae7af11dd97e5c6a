"""The browser. In it, no page may log an error, throw, or load anything but the files of its folder."""

import contextlib
import os
from pathlib import Path

from playwright.sync_api import sync_playwright

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
    # A name would be asked for outside. No name is needed here.
    "--host-resolver-rules=MAP * ~NOTFOUND",
]
RACES = Path(__file__).resolve().parents[2] / "docs" / "races"
STORIES = ["five-users", "lost-answers", "last-item", "late-delete", "two-leaders", "one-hundred"]
# How long a story or an answer may take on a busy machine. Nothing is concluded from how long it does take.
PATIENCE_MS = 120_000


def demand(is_so, otherwise):
    if not is_so:
        raise SystemExit(f"FAILED: {otherwise}")


class Browser:
    """Chromium with an empty profile. Each `context` is a profile of its own."""

    def __init__(self):
        self.complaints = []
        self.asked = set()

    def __enter__(self):
        self.driver = sync_playwright().start()
        self.chromium = self.driver.chromium.launch(executable_path=os.environ["CHROMIUM"], args=FLAGS)
        return self

    def __exit__(self, *_):
        self.chromium.close()
        self.driver.stop()

    @contextlib.contextmanager
    def context(self, watched=True, **options):
        options = {"viewport": DESKTOP, "color_scheme": "light"} | options
        context = self.chromium.new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        context.on("request", lambda request: self.asked.add(request.url))
        if watched:
            context.on("weberror", lambda error: self.complaints.append(f"thrown: {error.error}"))
            context.on("console", self.heard)
        try:
            yield context
        finally:
            context.close()

    @contextlib.contextmanager
    def page(self, story="", **options):
        with self.context(**options) as context:
            yield self.open(context, story)

    def open(self, context, story="", folder=RACES):
        page = context.new_page()
        page.goto(f"{(folder / 'index.html').as_uri()}#{story}")
        page.wait_for_selector("[data-story-button]", state="attached")
        return page

    def heard(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"logged: {message.text}")

    def was_quiet(self):
        demand(not self.complaints, "the page complained:\n  " + "\n  ".join(self.complaints))
        foreign = [url for url in self.asked if not url.startswith(("file:", "data:"))]
        demand(self.asked, "no request of the page was seen")
        demand(not foreign, f"the page loads from elsewhere: {foreign}")


def state(page):
    return page.get_attribute("[data-story-state]", "data-story-state")


def play(page, story, speed="all", **settings):
    """Opens a story, sets it, and presses Play."""
    page.evaluate("story => { location.hash = `#${story}`; }", story)
    page.wait_for_selector(f'[data-story="{story}"]')
    page.select_option("#choose-speed", speed)
    for name, value in settings.items():
        page.select_option(f"#choose-{name}", value)
    page.click('[data-action="play"]')


def ended(page, story):
    """Waits for the end of a story and gives the contents of the page."""
    page.wait_for_selector(f'[data-story="{story}"][data-story-state="ended"]')
    return page.evaluate(SHOWN)


# The counters of each side as numbers, the verdicts, and whether they are good.
SHOWN = """() => {
  const counters = {}, verdicts = {}, good = {};
  for (const one of document.querySelectorAll('[data-counter]')) {
    const { side, counter } = one.dataset;
    (counters[side] ??= {})[counter] = Number(one.textContent.replaceAll(',', ''));
  }
  for (const one of document.querySelectorAll('[data-verdict-side]')) {
    verdicts[one.dataset.verdictSide] = one.textContent;
    good[one.dataset.verdictSide] = one.dataset.good;
  }
  const said = [...document.querySelectorAll('.judgement')].map((one) => one.innerText.replaceAll('\\n', ' ')).join(' | ');
  return { counters, verdicts, good, said };
}"""
