"""The tables and the requests: what appears as it happens, and what is said when nothing can appear."""

import json
import secrets
import statistics
import subprocess
import time

from browser import PATIENCE_MS, demand
from told import filled

# The page promises that a change appears within a second of real time.
WITHIN_SECONDS = 1
CHANGES = 5
ENOUGH = 4  # tries to connect that fail


def curl(url, method, body, *headers):
    headers = ["content-type: application/json", *headers]
    command = ["curl", "-sS", "--max-time", "600", "-X", method, url, "-w", "\n%{http_code}"]
    command += [word for header in headers for word in ("-H", header)]
    command += [] if body is None else ["-d", json.dumps(body)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    status = int(answer.rsplit("\n", 1)[1])
    demand(status < 300, f"{method} {url} was answered {answer}")


def a_row_changed_by_curl_appears_within_a_second(browser):
    lamp = f"lamp-{secrets.token_hex(4)}"
    url = f"{browser.about()['functionsUrl']}/devices/{lamp}"
    with browser.context() as context:
        tables, requests = browser.open(context, "tables"), browser.open(context, "requests")
        for page, part in ((tables, "tables"), (requests, "requests")):
            page.wait_for_selector(f'[data-connection="{part}"][data-connected="true"]')
        curl(url, "PUT", {"state": {"brightness": 0}})  # the first request to a function starts it
        waited = []
        for change in range(1, CHANGES + 1):
            curl(f"{url}/state", "PATCH", {"brightness": change})
            begun = time.monotonic()
            tables.wait_for_function(ROW, arg=[lamp, f"version {change + 1}"], timeout=PATIENCE_MS)
            waited.append(time.monotonic() - begun)
        # The one assertion on real time. It is on the median, so that a machine that stands still for once is no failure.
        print("  seconds until a change was seen: " + ", ".join(f"{seconds:.2f}" for seconds in waited))
        demand(statistics.median(waited) <= WITHIN_SECONDS, f"changes appear after {waited} seconds")
        row = tables.locator(f'[data-table="Devices"] [data-row*="{lamp}"]')
        demand(" ago" in row.inner_text(), f"the row does not say when it was written: {row.inner_text()}")
        row.locator("summary").click()
        demand(f'"brightness": {CHANGES}' in row.locator("pre").inner_text(), "the row does not show its attributes")
        demand(row.locator("li").count() > 0, "the row does not explain itself")

        request = requests.locator(f'[data-request="PATCH /devices/{{deviceId}}/state"][data-key="{lamp}"]')
        request.first.wait_for()
        request.first.locator("button").click()
        emf = json.loads(request.first.locator("pre").inner_text())
        demand("_aws" in emf, f"the request has no EMF line: {emf}")


def a_lease_that_was_there_before_has_a_bar(browser):
    key = f"lease-{secrets.token_hex(4)}"
    curl(f"{browser.about()['functionsUrl']}/leases/{key}", "PUT", {"holder": "ann", "ttlSeconds": 900})
    with browser.page("tables") as page:
        row = f"[data-row*='{key}']"
        page.wait_for_selector(f"{row} .bar-in", state="attached")
        demand(filled(page, row) > 0, "the bar of a lease is empty when the page opens")


ROW = """([key, version]) => [...document.querySelectorAll('[data-table="Devices"] [data-row]')].some((row) =>
  row.querySelector('.key').textContent === key && row.textContent.includes(version))"""


def a_lost_connection_is_said_and_comes_back(browser):
    """Without shared workers, because only then the driver can take the connection away. The browser logs each try."""
    with browser.context(watched=False) as context:
        context.add_init_script("delete window.SharedWorker")
        tries = []

        def refuse(route):
            """Breaks the connection first. Then the server answers, but with an error, which a browser does not try again."""
            tries.append(route)
            route.abort() if len(tries) == 1 else route.fulfill(status=503)

        context.route("**/console/tables", refuse)
        page = browser.open(context, "tables")
        for _ in range(PATIENCE_MS // 50):
            if len(tries) >= ENOUGH:
                break
            page.wait_for_timeout(50)
        demand(len(tries) >= ENOUGH, f"the page tried {len(tries)} times to connect, and then no more")
        said = page.inner_text('[data-connection="tables"]')
        demand("Not connected, trying again" in said, f"a lost connection is not said: {said}")
        context.unroute_all()
        page.wait_for_selector('[data-connection="tables"][data-connected="true"]')
        page.wait_for_selector('[data-table="Devices"]')
