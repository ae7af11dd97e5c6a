"""What the page says of a play and of tables that this test tells it, so that each thing occurs that a server may say."""

import json
import time

from browser import PATIENCE_MS, demand, ended, play

KEPT = 200  # lines of the list that are in the page at once
NOTES = 450
OWN = "refused by its own first send, which was applied"
REFUSED = "refused: its condition does not hold"
COUNTERS = [("appliedTwice", "Applied twice"), ("removed", "Removed"), ("requests", "Requests")]
CLIENTS = ["Ann", "Bob"]
LEASE = 'Leases {"leaseKey":"controller"}'
MINUTE_MS = 60_000


def stream(*events):
    """An answer with these events."""
    body = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
    # A browser that loses a stream of tables asks again, and not before this time.
    return {"status": 200, "content_type": "text/event-stream", "body": f"retry: {PATIENCE_MS}\n\n{body}"}


def told_play():
    """Two requests are refused, one with a reason and one without. Both watched counters rise once."""
    sides = [{"id": side, "title": side, "how": "", "clients": CLIENTS} for side in ("naive", "fencepost")]
    counters = [{"name": name, "label": label, "help": ""} for name, label in COUNTERS]
    begin = {"story": "late-delete", "title": "", "seed": 1, "settings": {}, "sides": sides, "counters": counters}
    begin["lead"] = "removed"
    moments = []
    for side in range(2):
        for client, why in enumerate([OWN, ""]):
            request = {"side": side, "client": client, "request": client}
            sent = {"operation": "PutItem", "is": "write", "resend": False, "text": f"PutItem of {CLIENTS[client]}"}
            refused = {"outcome": "conflict", "text": why}
            moments += [{"at": 10 + client, "kind": "sent"} | request | sent,
                        {"at": 20 + client, "kind": "arrived"} | request | refused,
                        {"at": 30 + client, "kind": "heard"} | request | refused]
        values = {"appliedTwice": 3, "removed": 1, "requests": 2}
        moments.append({"at": 40, "side": side, "kind": "counters", "values": values})
        note = {"side": side, "client": None, "kind": "note"}
        moments += [note | {"at": 50 + number, "text": f"note {number}"} for number in range(NOTES)]
    moments.sort(key=lambda moment: moment["at"])
    verdicts = [{"counters": {}, "verdict": "", "good": side == 1} for side in range(2)]
    return stream(("begin", begin), ("moments", moments), ("end", {"sides": verdicts, "at": 50 + NOTES}))


def show(browser, context):
    """The page at the end of the told play."""
    context.route("**/console/stories/*", lambda route: route.fulfill(**told_play()))
    page = browser.open(context)
    play(page, "late-delete")
    ended(page, "the told play")
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
        amount, body = panel.locator(".lines-top p"), panel.locator(".happened tbody")
        body.locator("tr").first.wait_for()
        every = 6 + 2 + NOTES
        wanted = [f"The last {KEPT} of {every} lines, the newest first.",
                  f"Lines {every - 2 * KEPT + 1} to {every - KEPT} of {every}, the newest first.",
                  f"Lines 1 to {KEPT} of {every}, the newest first."]
        for index, sentence in enumerate(wanted):
            demand(amount.inner_text() == sentence, f"the list says {amount.inner_text()!r}, and not {sentence!r}")
            demand(body.locator("tr").count() == KEPT, f"the list has {body.locator('tr').count()} lines")
            if index + 1 < len(wanted):
                panel.locator('[data-action="older"]').click()
        demand(panel.locator('[data-action="older"]').is_disabled(), "there are lines before the first")
        lines = [line.split("\t")[-1] for line in body.inner_text().splitlines()]
        for line in (f"PutItem of Ann: {OWN}", f"hears: {OWN}", f"PutItem of Bob: {REFUSED}", f"hears: {REFUSED}",
                     "applied twice: 3 now", "removed: 1 now"):
            demand(lines.count(line) == 1, f"{lines.count(line)} lines say {line!r}: {lines[-10:]}")
        for _ in wanted:
            if panel.locator('[data-action="newer"]').is_enabled():
                panel.locator('[data-action="newer"]').click()
        demand(amount.inner_text() == wanted[0], f"Newer lines lead to {amount.inner_text()!r}")


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


def tables_say_what_is_missing_and_leases_have_a_bar(browser):
    """Without shared workers, because only then the driver can answer for the server."""
    now = int(time.time() * 1000)
    row = {"table": "Leases", "version": 1, "incarnation": None, "purgeAt": None, "holder": "ann", "token": 1,
           "changedAt": None, "written": None, "sentences": [], "problems": [], "attributes": {}}
    clock = {"seenAt": now - MINUTE_MS, "expiresAt": now + MINUTE_MS}
    rows = [row | clock | {"id": LEASE, "key": "controller", "kind": "lease"},
            row | {"id": "gone", "key": "gone", "kind": "live", "seenAt": now, "expiresAt": None}]
    tables = [{"name": "Leases", "rows": 2, "shown": 2, "more": False},
              {"name": "Devices", "rows": 200, "shown": 200, "more": True},
              {"name": "Orders", "rows": 0, "shown": 0, "more": False, "error": "The table cannot be read."}]
    first = {"all": True, "tables": tables, "changed": rows, "gone": [], "now": now}
    later = {"tables": [tables[0] | {"rows": 1}, *tables[1:]], "changed": [], "gone": ["gone"], "now": now}
    with browser.context() as context:
        context.add_init_script("delete window.SharedWorker")
        context.route("**/console/tables", lambda route: route.fulfill(**stream(("rows", first), ("rows", later))))
        page = browser.open(context, "tables")
        page.wait_for_selector(f"[data-row='{LEASE}']")
        said = {name: page.inner_text(f'[data-table="{name}"]') for name in ("Devices", "Orders")}
        demand("the first 200 rows; there are more" in said["Devices"], f"that there are more rows is not said: {said}")
        demand("The table cannot be read." in said["Orders"], f"an error is not said: {said}")
        demand("Empty" not in said["Orders"], f"a table that cannot be read is called empty: {said}")
        page.wait_for_function("() => !document.querySelector('[data-row=\"gone\"]')")
        part = filled(page, f"[data-row='{LEASE}']")
        demand(0.2 < part <= 0.5, f"half of a lease is over, and its bar is at {part}")


def filled(page, row):
    """How much of the bar of a lease is filled."""
    return page.locator(f"{row} .bar-in").evaluate("one => new DOMMatrix(one.style.transform).a")
