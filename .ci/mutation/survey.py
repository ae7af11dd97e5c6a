"""The campaign as a whole: lists, builds, runs, keeps the results, and says what survived."""

import json
import math
import time
from collections import Counter

from building import build
from campaign import Killing, Reach, each
from listed import Accepted, mutants
from plain import Plain
from workspace import OWN, ROOT, Workspace, digest, without_unit_tests

KEPT = OWN / "results.jsonl"
# Seconds of tests that each mutant gets, one round after the other: the quick tests of all mutants come first. They kill
# most, and what is left is known early.
ROUNDS = (5, 40, math.inf)
APART = "apart"  # a mutant that is to be built by itself
QUICKLY = " quickly"
LATER = object()  # the outcome of a mutant that was not begun, because the time was over
REPORT = ROOT / "target" / "ci" / "mutants.json"


class Results:
    """What became of each mutant. A mutant of a file that has changed, but for its unit tests, is a new one."""

    def __init__(self, fresh):
        if fresh:
            KEPT.unlink(missing_ok=True)
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        lines = KEPT.read_text().splitlines() if KEPT.exists() else []
        self.kept = {entry["key"]: entry for entry in map(json.loads, lines)}
        self.files = {}
        self.accepted = Accepted()

    def key(self, mutant):
        if mutant.file not in self.files:
            self.files[mutant.file] = digest(without_unit_tests((ROOT / mutant.file).read_bytes()))
        return f"{self.files[mutant.file]} {mutant.file}:{mutant.start[0]}:{mutant.start[1]}: {mutant.name}"

    def of(self, mutant, tests):
        """What became of it. One that survived other tests may not survive these.

        For one that may survive, the quick tests are enough.
        """
        entry = self.kept.get(self.key(mutant))
        enough = {tests, tests + QUICKLY} if self.accepted.entry_of(mutant) else {tests}
        if entry and entry["result"] == "survived" and entry["tests"] not in enough:
            return None
        return None if entry and entry["result"] == APART else entry

    def reasons(self, chosen, result):
        """The mutants of which this is kept, with what it is by."""
        entries = [(mutant.number, self.kept.get(self.key(mutant))) for mutant in chosen]
        return {number: entry["by"] for number, entry in entries if entry and entry["result"] == result}

    def keep(self, mutant, tests, result, by):
        entry = {"key": self.key(mutant), "result": result, "by": by, "tests": tests}
        self.kept[entry["key"]] = entry
        with KEPT.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def survey(globs, revision, fresh, jobs, minutes):
    begin = time.monotonic()
    results = Results(fresh)
    chosen = mutants(globs, revision)
    if not chosen:
        print("there is no mutant of the core here")
        return 0
    print(f"{len(chosen)} mutants", flush=True)
    # All are built, also for a few files, so that what the tests reach is recorded once. Of a change, only its own are
    # built: what was recorded before is of other code.
    everything = chosen if revision else mutants()
    unviable, apart = (results.reasons(everything, result) for result in ("unviable", APART))
    binaries, code, unviable, apart = build(Workspace("workspace"), everything, unviable, apart)
    reach = Reach(binaries, code)
    reach.record(jobs)
    for name in reach.failing():
        print(f"not used, because it fails without a mutant: {name}", flush=True)
    tests = reach.digest()
    killing = Killing(reach)
    by_number = {mutant.number: mutant for mutant in everything}
    for number, reason in unviable.items():
        if results.of(by_number[number], tests) is None:
            results.keep(by_number[number], tests, "unviable", reason)
    for number, reason in apart.items():
        if results.of(by_number[number], tests) is None:
            results.keep(by_number[number], tests, APART, reason)
    for mutant in chosen:
        if (entry := results.of(mutant, tests)) and entry["result"] == "killed":
            killing.learn(mutant, entry["by"])
    run(chosen, apart, results, tests, killing, jobs, time.monotonic() + 60 * minutes)
    tried = [mutant for mutant in chosen if results.of(mutant, tests)]
    if left_out := len(chosen) - len(tried):
        print(f"left out: {left_out} mutants, because more than {minutes:g} minutes are needed to try them")
    return report(tried, results, tests, bool(globs or revision or left_out), time.monotonic() - begin)


def run(chosen, apart, results, tests, killing, jobs, until):
    """It begins no mutant after `until`. What is undecided then is left out."""
    is_over = lambda: time.monotonic() > until
    left = [mutant for mutant in chosen if results.of(mutant, tests) is None]
    branches = [mutant for mutant in left if mutant.number not in apart]
    for seconds in ROUNDS:
        open_ones = [mutant for mutant in branches if results.of(mutant, tests) is None]
        for mutant, outcome in each(jobs, open_ones, lambda mutant: LATER if is_over() else killing.try_mutant(mutant, seconds)):
            if outcome is LATER:
                continue
            if outcome:
                said(mutant, results, tests, outcome)
            elif seconds > ROUNDS[0] and results.accepted.entry_of(mutant):
                said(mutant, results, tests + QUICKLY, ("survived", f"{seconds} seconds of tests"))
            else:
                print(f"not noticed so far: {mutant.file}:{mutant.line}: {mutant.name}", flush=True)
    plain = Plain(killing)
    for mutant in left:
        if mutant.number in apart and not is_over():
            said(mutant, results, tests, plain.try_mutant(mutant))


def said(mutant, results, tests, outcome):
    results.keep(mutant, tests, *outcome)
    print(f"{outcome[0]}: {mutant.file}:{mutant.line}: {mutant.name} ({outcome[1]})", flush=True)


def report(chosen, results, tests, partly, seconds):
    accepted = results.accepted
    entries = [(mutant, results.of(mutant, tests)) for mutant in chosen]
    counts = Counter(entry["result"] for _, entry in entries)
    viable = len(chosen) - counts["unviable"]
    survivors = [mutant for mutant, entry in entries if entry["result"] == "survived"]
    surprising = [mutant for mutant in survivors if accepted.entry_of(mutant) is None]
    surviving = [accepted.entry_of(mutant) for mutant in survivors]
    stale = [] if partly else [entry for entry in accepted.entries if entry not in surviving]
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps({
        "mutants": len(chosen), "unviable": counts["unviable"], "killed": counts["killed"],
        "timed out": counts["timed out"], "survived": len(survivors), "accepted": len(survivors) - len(surprising),
        "each": [{"file": mutant.file, "line": mutant.line, "mutant": mutant.name, "result": entry["result"],
                  "by": entry["by"]} for mutant, entry in entries],
    }, indent=1))
    for mutant in surprising:
        print(f"survives: {mutant.file}:{mutant.line}: {mutant.name}")
    for entry in stale:
        print(f"accepted, but does not survive: {entry['file']}: {entry['mutant']}: {entry['line']}")
    noticed = counts["killed"] + counts["timed out"]
    print(f"{len(chosen)} mutants, {counts['unviable']} unviable; of {viable} viable ones {counts['killed']} killed, "
          f"{counts['timed out']} timed out, {len(survivors)} survived, {len(survivors) - len(surprising)} of them accepted; "
          f"{100 * noticed / max(viable, 1):.1f} % noticed, in {seconds / 60:.0f} minutes")
    return 1 if surprising or stale else 0
