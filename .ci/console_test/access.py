"""For people who do not see, do not point, or have a small screen: axe-core, the keyboard, a phone of 360 pixels."""

import os
from pathlib import Path

from browser import DESKTOP, PHONE, STORIES, demand, ended, play, state

SMALL = {"width": 360, "height": 640}
PARTS = ["stories", "tables", "requests"]
MOST_TABS = 30


def axe_finds_nothing(browser):
    axe = Path(os.environ["AXE"]).read_text()
    for scheme in ("light", "dark"):
        for viewport in (DESKTOP, PHONE):
            with browser.page(color_scheme=scheme, viewport=viewport) as page:
                page.evaluate(axe)
                where = f"{scheme}, {viewport['width']} wide"
                violations(page, f"before a story, {where}")
                for story in ("lost-answers", "one-hundred"):
                    play(page, story)
                    ended(page, story)
                    for summary in page.query_selector_all("details:not([open]) > summary"):
                        if summary.is_visible():
                            summary.click()
                    violations(page, f"{story}, {where}")
                for part in PARTS[1:]:
                    page.evaluate("part => { location.hash = `#${part}`; }", part)
                    page.wait_for_selector(f'[data-part="{part}"]:not([hidden])')
                    opened = f'[data-part="{part}"] :is(summary, [aria-expanded])'
                    page.locator(opened).first.click()
                    violations(page, f"{part}, {where}")


def violations(page, where):
    """Every rule of axe counts, not just the serious ones."""
    page.wait_for_function("() => document.getAnimations().every((one) => one.playState !== 'running')")
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    demand(found["passes"], f"axe checked nothing: {where}")
    said = [f"{one['impact']}: {one['help']} ({one['id']}): {node['html'][:200]}"
            for one in found["violations"] for node in one["nodes"]]
    demand(not said, f"axe, {where}:\n  " + "\n  ".join(said))


def play_is_reached_and_pressed_by_keyboard(browser):
    with browser.page("stories/lost-answers") as page:
        page.keyboard.press("Tab")
        demand(page.evaluate("document.activeElement.className") == "skip", "the first stop is not the skip link")
        for _ in range(MOST_TABS):
            page.keyboard.press("Tab")
            focus = page.evaluate("""() => {
              const style = getComputedStyle(document.activeElement);
              return { action: document.activeElement.dataset.action, outline: style.outlineStyle, width: style.outlineWidth };
            }""")
            demand(focus["outline"] != "none" and focus["width"] != "0px", f"a focus is not visible: {focus}")
            if focus["action"] == "play":
                break
        demand(focus["action"] == "play", f"{MOST_TABS} tabs do not reach Play")
        page.keyboard.press("Space")
        page.wait_for_selector('[data-story-state="playing"]')
        page.keyboard.press("Enter")
        demand(state(page) == "paused", "Enter does not pause")
        page.keyboard.press("Tab")
        demand(page.evaluate("document.activeElement.dataset.action") == "stop", "Stop is not next to Play")
        page.keyboard.press("Space")
        demand(state(page) == "idle", "Space does not stop")
        page.keyboard.press("Shift+Tab")
        page.select_option("#choose-speed", "all")
        page.focus('[data-action="play"]')
        page.keyboard.press("Enter")
        ended(page, "lost-answers, by keyboard")


def nothing_is_wider_than_a_small_phone(browser):
    with browser.page(viewport=SMALL) as page:
        narrow(page, "before a story")
        for story in STORIES:
            play(page, story)
            ended(page, story)
            narrow(page, story)
        for part in PARTS[1:]:
            page.evaluate("part => { location.hash = `#${part}`; }", part)
            page.wait_for_selector(f'[data-part="{part}"]:not([hidden])')
            page.locator(f'[data-part="{part}"] :is(summary, [aria-expanded])').first.click()
            narrow(page, part)


def no_counter_overflows_its_cell(browser):
    """At the widths at which the counters change their order, and around them."""
    with browser.page() as page:
        for story in ("lost-answers", "last-item", "late-delete"):
            play(page, story)
            ended(page, story)
            for width in (320, 360, 390, 639, 641, 959, 961, 1199, 1201, 1280):
                page.set_viewport_size({"width": width, "height": 800})
                over = page.evaluate(OVERFLOWING)
                where = f"{story}, {width} wide"
                demand(over["counters"] > 0, f"no counter is shown: {where}")
                demand(not over["said"], f"outside of its cell: {where}:\n  " + "\n  ".join(over["said"]))


# Each text of a counter must leave some of the padding of its cell free.
OVERFLOWING = """() => {
  const said = [], all = document.querySelectorAll('.counter :is(dt, dd)');
  for (const one of all) {
    const range = document.createRange();
    range.selectNodeContents(one);
    const cell = one.parentElement.getBoundingClientRect(), text = range.getBoundingClientRect();
    if (text.left < cell.left || text.right > cell.right - 4 || text.bottom > cell.bottom || text.top < cell.top)
      said.push(`${one.textContent} ends at ${text.right}, and its cell at ${cell.right}`);
  }
  return { counters: all.length, said };
}"""


def an_unknown_part_hides_nothing(browser):
    with browser.page("tables") as page:
        for name in ("constructor", "toString", "nothing"):
            page.evaluate("name => { location.hash = `#${name}`; }", name)
            page.wait_for_function("name => location.hash === `#${name}`", arg=name)
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            parts = page.eval_on_selector_all("[data-part]:not([hidden])", "all => all.map((one) => one.dataset.part)")
            demand(parts == ["tables"], f"#{name} shows {parts}")


def narrow(page, where):
    width = page.evaluate("document.documentElement.scrollWidth")
    demand(width <= SMALL["width"], f"{where}: the page is {width} wide")
    small = page.evaluate("""() => [...document.querySelectorAll('button, select, input, nav a')]
      .filter((one) => one.getClientRects().length > 0 && one.getBoundingClientRect().height < 44)
      .map((one) => `${one.outerHTML.slice(0, 80)} is ${one.getBoundingClientRect().height} high`)""")
    demand(not small, f"{where}: too small to touch:\n  " + "\n  ".join(small))
