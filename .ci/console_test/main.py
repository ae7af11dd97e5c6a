"""Tests the console page in a browser. `.ci/console` starts it with what it needs: CHROMIUM and AXE."""

import argparse
import contextlib
import os
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import access
import live
import pictures
import plays
import told
from browser import Browser
from processes import free_port, started, wait_until


def answers(page):
    with contextlib.suppress(OSError):  # not reached yet, or reached and not serving yet
        with urllib.request.urlopen(f"{page}/console/about", timeout=5) as answer:
            return answer.status == 200
    return False


@contextlib.contextmanager
def server():
    """The address of the page: the one in PAGE, or that of a `cargo dev` for this block."""
    if page := os.environ.get("PAGE"):
        yield page.rstrip("/")
        return
    page_port, command = free_port(), ["cargo", "dev", "--page-port"]
    command += [str(page_port), "--port", str(free_port()), "--dynamodb-port", str(free_port())]
    page = f"http://127.0.0.1:{page_port}"
    with started("console", command) as dev:
        wait_until(lambda: answers(page), dev, 1800)
        yield page


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--screenshots", metavar="DIR", type=Path, help="keep pictures of the page here")
    options = options.parse_args()
    with server() as page, Browser(page) as browser:
        checks = [
            plays.every_story_ends_as_it_promises,
            plays.without_faults_both_sides_are_right,
            plays.the_same_seed_shows_the_same_numbers,
            plays.a_story_is_paused_continued_and_stopped,
            plays.a_pause_before_the_first_event_holds,
            plays.a_refused_setting_is_named,
            told.a_refusal_is_explained_and_a_rise_is_told,
            told.the_keyboard_reads_every_mark,
            told.tables_say_what_is_missing_and_leases_have_a_bar,
            live.a_lease_that_was_there_before_has_a_bar,
            live.a_row_changed_by_curl_appears_within_a_second,
            live.a_lost_connection_is_said_and_comes_back,
            plays.ten_tabs_play_at_once,
            plays.closing_a_tab_stops_its_story,
            access.play_is_reached_and_pressed_by_keyboard,
            access.an_unknown_part_hides_nothing,
            access.no_counter_overflows_its_cell,
            access.nothing_is_wider_than_a_small_phone,
            access.axe_finds_nothing,
        ]
        for check in checks:
            print(f"{check.__name__.replace('_', ' ')} …", flush=True)
            check(browser)
        if options.screenshots:
            pictures.take(browser, options.screenshots)
        browser.was_quiet()
    print("the console page is as it should be")


if __name__ == "__main__":
    main()
