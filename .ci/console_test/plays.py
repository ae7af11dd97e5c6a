"""The stories: what each must show, the same numbers from the same seed, many tabs, and tabs that are closed."""

import re
import time

from browser import PATIENCE_MS, STORIES, demand, ended, play, state

TABS = 10


def every_story_ends_as_it_promises(browser):
    with browser.page() as page:
        names = page.eval_on_selector_all("[data-story-button]", "all => all.map(one => one.dataset.storyButton)")
        demand(names == STORIES, f"the stories are {names}")
        for story in STORIES:
            play(page, story)
            shown = ended(page, story)
            print(f"  {story}: {shown['said']}", flush=True)
            PROMISES.get(story, lambda *_: None)(page, shown)
            for side, counters in shown["counters"].items():
                demand(all(value == value for value in counters.values()), f"{story}: {side} shows {counters}")
                if side != "naive":
                    demand(counters["appliedTwice"] == 0, f"{story}: {side} applied a change twice: {counters}")
                    demand(shown["good"][side] == "true", f"{story}: {side} is not right: {shown['said']}")
            drawn(page, story)


def five_users(_, shown):
    fencepost = shown["counters"]["fencepost"]
    demand(fencepost["acknowledged"] + fencepost["unknown"] == 50, f"five users: not 50 changes: {fencepost}")
    demand(holds_what_it_says(fencepost), f"five users: {fencepost}")


def lost_answers(_, shown):
    naive, fencepost = shown["counters"]["naive"], shown["counters"]["fencepost"]
    demand(naive["appliedTwice"] > 0, f"lost answers: the naive loop applied nothing twice: {naive}")
    demand(naive["held"] > naive["acknowledged"], f"lost answers: the naive loop does not hold too much: {naive}")
    demand(fencepost["lostAnswers"] > 0, f"lost answers: Fencepost lost no answer: {fencepost}")
    demand(holds_what_it_says(fencepost), f"lost answers: {fencepost}")
    demand(shown["good"]["naive"] == "false", "lost answers: the naive loop is called right")


def holds_what_it_says(counters):
    """What was acknowledged is held, and nothing else, but for changes of which the client was told that nobody knows."""
    return counters["acknowledged"] <= counters["held"] <= counters["acknowledged"] + counters["unknown"]


def last_item(_, shown):
    demand("nobody has it" in shown["verdicts"]["naive"], f"the last item: the usual way does not lose it: {shown['said']}")
    demand(shown["counters"]["fencepost"]["held"] == 1, f"the last item: not one order: {shown['counters']['fencepost']}")
    demand(re.search(r"stock (is )?0\b", shown["verdicts"]["fencepost"]), f"the last item: {shown['said']}")


def late_delete(page, shown):
    removed = {side: counters["removed"] for side, counters in shown["counters"].items()}
    demand(removed == {"naive": 1, "fencepost": 0}, f"the late delete: removed are {removed}")
    demand("superseded" in lines(page, "fencepost"), "the late delete: no line says that it is superseded")
    demand(shown["counters"]["fencepost"]["held"] == 1, f"the late delete: the mapping is gone: {shown['said']}")


def two_leaders(_, shown):
    held = {side: counters["held"] for side, counters in shown["counters"].items()}
    demand(held == {"naive": 2, "fencepost": 1}, f"two leaders: the children are {held}")


PROMISES = {"five-users": five_users, "lost-answers": lost_answers, "last-item": last_item, "late-delete": late_delete,
            "two-leaders": two_leaders}


def lines(page, side):
    """The text of "What happened"."""
    page.click(f'[data-side-panel="{side}"] .happened summary')
    table = page.locator(f'[data-side-panel="{side}"] .happened tbody')
    table.locator("tr").first.wait_for()
    return table.inner_text()


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


def without_faults_both_sides_are_right(browser):
    with browser.page() as page:
        for story, settings in (("two-leaders", {"delay": 0}), ("five-users", {"lostAnswers": 0, "lateBy": 0})):
            play(page, story, **settings)
            shown = ended(page, story)
            demand(shown["good"] == {"naive": "true", "fencepost": "true"}, f"{story} without faults: {shown['said']}")


def the_same_seed_shows_the_same_numbers(browser):
    with browser.page() as page:
        runs = []
        for seed in (7, 7, 8):
            play(page, "lost-answers", seed=seed)
            shown = ended(page, "lost-answers")
            runs.append((shown, lines(page, "naive"), lines(page, "fencepost")))
        demand(runs[0] == runs[1], f"seed 7 showed {runs[0][0]}, and then {runs[1][0]}")
        demand(runs[0][1:] != runs[2][1:], "seeds 7 and 8 play the same story, so the seed is not used")


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
        ended(page, "lost-answers, after Stop")


def a_pause_before_the_first_event_holds(browser):
    """The answer of the server waits until Pause has been pressed."""
    with browser.context() as context:
        page = browser.open(context)
        held = []
        page.route("**/console/stories/*", lambda route: held.append(route))
        play(page, "lost-answers")
        while not held:
            page.wait_for_timeout(20)
        page.click('[data-action="play"]')
        demand(state(page) == "paused", "Pause does not pause before the first event")
        with page.expect_event("requestfinished", lambda request: "/console/stories/" in request.url):
            held[0].continue_()
        page.wait_for_selector("[data-counter]")
        page.wait_for_timeout(300)
        moved = page.eval_on_selector_all("[data-counter]", "all => all.filter((one) => one.textContent !== '0').length")
        demand(state(page) == "paused" and moved == 0, f"a story that was paused before it began is {state(page)}")
        page.click('[data-action="play"]')
        ended(page, "lost-answers, paused before it began")


def a_refused_setting_is_named(browser):
    """The server's problem is shown at its setting. The browser logs the 400, so this page is not watched."""
    with browser.page(watched=False) as page:
        page.eval_on_selector("#story-settings", "form => { form.noValidate = true; }")
        play(page, "lost-answers", seed=-1)
        page.wait_for_selector('[data-story-state="failed"]')
        demand(page.get_attribute("#set-seed", "aria-invalid") == "true", "a refused seed is not marked")
        demand(len(page.inner_text("[data-verdict]")) > len("Failed"), "a refused seed is not explained")


def ten_tabs_play_at_once(browser):
    with browser.context() as context:
        pages = [browser.open(context) for _ in range(TABS)]
        plan = [(page, STORIES[index % len(STORIES)]) for index, page in enumerate(pages)]
        for page, story in plan:
            play(page, story)
        for page, story in plan:
            shown = ended(page, story)
            right = [good for side, good in shown["good"].items() if side != "naive"]
            demand(right and all(good == "true" for good in right), f"{story}, one of ten: {shown['said']}")
        for page in pages:
            demand(page.get_attribute("[data-connection=tables]", "data-connected") == "true", "a tab is not connected")
        wait(browser, lambda about: about["playing"] == 0, "stories that ended are still playing")


def closing_a_tab_stops_its_story(browser):
    """The tab reads slowly, so the server still plays when the tab is closed. It counts the plays that it has stopped."""
    stopped = browser.about()["stopped"]
    with browser.context(watched=False) as context:
        page = browser.open(context)
        network = context.new_cdp_session(page)
        network.send("Network.enable")
        network.send("Network.emulateNetworkConditions",
                     {"offline": False, "latency": 0, "downloadThroughput": 4096, "uploadThroughput": -1})
        largest = {name: page.get_attribute(f"#set-{name}", "max") for name in ("writers", "changes")}
        play(page, "lost-answers", **largest)
        wait(browser, lambda about: about["playing"] == 1, "no story plays")
        page.close()
        wait(browser, lambda about: about["stopped"] == stopped + 1, "the story plays on without its tab")
        wait(browser, lambda about: about["playing"] == 0, "a story that was stopped is said to play")


def wait(browser, is_so, otherwise):
    end = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < end:
        if is_so(browser.about()):
            return
        time.sleep(0.05)
    demand(False, otherwise)
