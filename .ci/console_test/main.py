"""Tests the page of races in a browser. `.ci/console` starts it with CHROMIUM and AXE."""

import argparse
import json
import os
import shutil
from pathlib import Path

from browser import DESKTOP, PHONE, RACES, STORIES, Browser, demand, ended, play, state

TOLD = RACES.parents[1] / "target" / "ci" / "told-play"
NOTES = 20
OWN = "refused by its own first send, which was applied"
REFUSED = "refused: its condition does not hold"
COUNTERS = [("appliedTwice", "Applied twice"), ("removed", "Removed"), ("requests", "Requests")]
CLIENTS = ["Ann", "Bob"]
SMALL = {"width": 360, "height": 640}
MOST_TABS = 30


def every_story_shows_its_end(browser):
    """The tests in dev/console/tests/ check each play. Here its numbers and its verdicts are on the page."""
    with browser.page() as page:
        names = page.eval_on_selector_all("[data-story-button]", "all => all.map(one => one.dataset.storyButton)")
        demand(names == STORIES, f"the stories are {names}")
        for story in STORIES:
            play(page, story)
            shown = ended(page, story)
            print(f"  {story}: {shown['said']}", flush=True)
            for side, good in shown["good"].items():
                demand(good == str(side != "naive").lower(), f"{story}: {side}: {shown['said']}")
            drawn(page, story)
            for lost in values(page, "lostAnswers"):
                for seed in values(page, "seed"):
                    play(page, story, lostAnswers=lost, seed=seed)
                    right(f"{story}, {lost} % lost, seed {seed}", ended(page, story))


def values(page, name):
    return page.eval_on_selector_all(f"#choose-{name} option", "all => all.map(one => one.value)")


def right(name, shown):
    """Every side but the naive one is right, and its counters are numbers."""
    for side, counters in shown["counters"].items():
        demand(all(value == value for value in counters.values()), f"{name}: {side} shows {counters}")
        fine = shown["good"][side] == "true" and counters["appliedTwice"] == 0
        demand(fine or side == "naive", f"{name}: {side}: {shown['said']} {counters}")


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


def a_story_is_paused_continued_and_stopped(browser):
    with browser.page() as page:
        play(page, "lost-answers", speed="0.02")
        page.wait_for_function("() => document.querySelector('[data-counter]')")
        page.click('[data-action="play"]')
        demand(state(page) == "paused", "Pause does not pause")
        before = page.inner_text("[data-time]")
        page.wait_for_timeout(300)
        demand(page.inner_text("[data-time]") == before, "a paused story goes on")
        page.click('[data-action="play"]')
        demand(state(page) == "playing", "Continue does not continue")
        page.click('[data-action="stop"]')
        demand(state(page) == "idle", "Stop does not stop")
        page.select_option("#choose-speed", "all")
        page.click('[data-action="play"]')
        ended(page, "lost-answers")


def told_play():
    """Two requests are refused, one with a reason and one without. Both watched counters rise once."""
    sides = [{"id": side, "title": side, "how": ""} for side in ("naive", "fencepost")]
    counters = [{"name": name, "label": label, "help": ""} for name, label in COUNTERS]
    story = {"name": "late-delete", "title": "", "summary": "", "settings": [], "clients": CLIENTS, "sides": sides}
    story |= {"lead": "removed", "counters": counters}
    moments = []
    for side in range(2):
        for client, why in enumerate([OWN, ""]):
            request = {"side": side, "client": client, "request": client}
            sent = {"is": "write", "text": f"PutItem of {CLIENTS[client]}"}
            refused = {"outcome": "conflict", "text": why}
            moments += [{"at": 10 + client, "kind": "sent"} | request | sent,
                        {"at": 20 + client, "kind": "arrived"} | request | refused,
                        {"at": 30 + client, "kind": "heard"} | request | refused]
        values = {"appliedTwice": 3, "removed": 1, "requests": 2}
        moments.append({"at": 40, "side": side, "kind": "counters", "values": values})
        note = {"side": side, "kind": "note"}
        moments += [note | {"at": 50 + number, "text": f"note {number}"} for number in range(NOTES)]
    moments.sort(key=lambda moment: moment["at"])
    verdicts = [{"counters": {}, "verdict": "", "good": side == 1} for side in range(2)]
    return story | {"plays": [{"seed": 1, "lostAnswers": 0, "at": 50 + NOTES, "sides": verdicts} | packed(moments)]}


def packed(moments):
    """The moments as a recording has them, each with a shape of its own."""
    texts = [value for moment in moments for value in moment.values() if isinstance(value, str)]
    number = {text: at for at, text in enumerate(texts)}
    shapes = [[f"${name}" if isinstance(value, str) else name for name, value in moment.items()] for moment in moments]
    lists = [[shape, *(number[value] if isinstance(value, str) else value for value in moment.values())]
             for shape, moment in enumerate(moments)]
    return {"shapes": shapes, "texts": texts, "moments": lists}


def show(browser, context):
    """The page at the end of the told play."""
    shutil.copytree(RACES, TOLD, dirs_exist_ok=True)
    (TOLD / "plays.js").write_text(f"const STORIES = [{json.dumps(told_play())}];\n")
    page = browser.open(context, folder=TOLD)
    play(page, "late-delete")
    ended(page, "late-delete")
    return page


def a_refusal_is_explained_and_a_rise_is_told(browser):
    with browser.context() as context:
        page = show(browser, context)
        demand(REFUSED in page.inner_text(".legend"), f"the legend does not explain a refusal: {page.inner_text('.legend')}")
        panel = page.locator('[data-side-panel="naive"]')
        hero = panel.locator(".hero dd").evaluate_all("all => all.map((one) => [one.dataset.counter, one.textContent])")
        demand(hero == [["removed", "1"]], f"what the story is about is not large: {hero}")
        twice = panel.locator('[data-counter="appliedTwice"]').inner_text()
        demand(twice == "3", f"applied twice is not among the other counters: {twice}")

        panel.locator(".happened summary").click()
        panel.locator(".lines:not(:empty)").wait_for()
        lines = [line.split("  ")[-1] for line in panel.locator(".lines").inner_text().splitlines()]
        demand(len(lines) == 6 + 2 + NOTES, f"the list has {len(lines)} lines")
        for line in (f"PutItem of Ann: {OWN}", f"hears: {OWN}", f"PutItem of Bob: {REFUSED}", f"hears: {REFUSED}",
                     "applied twice: 3 now", "removed: 1 now"):
            demand(lines.count(line) == 1, f"{lines.count(line)} lines say {line!r}: {lines[-10:]}")


def the_keyboard_reads_every_mark(browser):
    with browser.context() as context:
        page = show(browser, context)
        panel = page.locator('[data-side-panel="naive"]')
        hint, canvas = panel.locator(".hint"), panel.locator("canvas")
        demand(hint.get_attribute("aria-live") == "polite", "what the marks mean is not announced")
        demand("Home" in page.inner_text(".keys"), "the legend does not explain the keys")
        canvas.focus()
        before = canvas.evaluate("one => one.toDataURL()")
        read = []
        for key in ["Home", *["ArrowRight"] * 4]:
            page.keyboard.press(key)
            read.append(hint.inner_text())
        wanted = [f"20 ms · Ann · {OWN} · PutItem of Ann", f"21 ms · Bob · {REFUSED} · PutItem of Bob",
                  "40 ms · a number that must stay 0 rose to this · applied twice: 3 now",
                  "40 ms · a number that must stay 0 rose to this · removed: 1 now", "50 ms · a note · note 0"]
        demand(read == wanted, f"the keyboard reads {read}")
        demand(canvas.evaluate("one => one.toDataURL()") != before, "the mark that is read is not shown")
        last = f"{49 + NOTES} ms · a note · note {NOTES - 1}"
        for key, sentence in (("ArrowLeft", wanted[3]), ("ArrowDown", wanted[0]), ("ArrowDown", wanted[1]),
                              ("ArrowUp", wanted[0]), ("End", last)):
            page.keyboard.press(key)
            demand(hint.inner_text() == sentence, f"{key} reads {hint.inner_text()!r}, and not {sentence!r}")
        page.keyboard.press("Escape")
        demand(canvas.evaluate("one => one.toDataURL()") == before, "a ring stays after Escape")


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


def violations(page, where):
    """Every rule of axe counts, not just the serious ones. A page from a file cannot preload its style for axe."""
    page.wait_for_function("() => document.getAnimations().every((one) => one.playState !== 'running')")
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'], preload: false })")
    demand(found["passes"], f"axe checked nothing: {where}")
    said = [f"{one['impact']}: {one['help']} ({one['id']}): {node['html'][:200]}"
            for one in found["violations"] for node in one["nodes"]]
    demand(not said, f"axe, {where}:\n  " + "\n  ".join(said))


def play_is_reached_and_pressed_by_keyboard(browser):
    with browser.page("lost-answers") as page:
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
        ended(page, "lost-answers")


def nothing_is_wider_than_a_small_phone(browser):
    with browser.page(viewport=SMALL) as page:
        narrow(page, "before a story")
        for story in STORIES:
            play(page, story)
            ended(page, story)
            narrow(page, story)


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


def narrow(page, where):
    width = page.evaluate("document.documentElement.scrollWidth")
    demand(width <= SMALL["width"], f"{where}: the page is {width} wide")
    small = page.evaluate("""() => [...document.querySelectorAll('button, select')]
      .filter((one) => one.getClientRects().length > 0 && one.getBoundingClientRect().height < 44)
      .map((one) => `${one.outerHTML.slice(0, 80)} is ${one.getBoundingClientRect().height} high`)""")
    demand(not small, f"{where}: too small to touch:\n  " + "\n  ".join(small))


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--picture", metavar="FILE", type=Path, help="keep a picture of a story at its end here")
    options = options.parse_args()
    with Browser() as browser:
        for check in (
            every_story_shows_its_end,
            a_story_is_paused_continued_and_stopped,
            a_refusal_is_explained_and_a_rise_is_told,
            the_keyboard_reads_every_mark,
            play_is_reached_and_pressed_by_keyboard,
            no_counter_overflows_its_cell,
            nothing_is_wider_than_a_small_phone,
            axe_finds_nothing,
        ):
            print(f"{check.__name__.replace('_', ' ')} …", flush=True)
            check(browser)
        if options.picture:
            with browser.page() as page:
                play(page, "lost-answers")
                ended(page, "lost-answers")
                page.eval_on_selector("[data-story]", "one => one.scrollIntoView({ block: 'start', behavior: 'instant' })")
                page.screenshot(path=options.picture, animations="disabled")
        browser.was_quiet()
    print("the page of races is as it should be")


if __name__ == "__main__":
    main()
