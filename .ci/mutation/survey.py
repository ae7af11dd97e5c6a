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
# Seconds of quick tests that each mutant gets, one round after the other. The first rounds kill most, so what is left is known
# early. The slow folders of tests are recorded only if all quick tests have let a mutant pass.
ROUNDS = (5, 40, math.inf)
APART = "apart"  # a mutant that is to be built by itself
QUICKLY = " quickly"
NO_TEST = "no test"  # the source of what the compiler says of a mutant
LATER = object()  # the outcome of a mutant that was not begun, because the time was over
REPORT = ROOT / "target" / "ci" / "mutants.json"


class Results:
    """What became of each mutant. A mutant of a file that has changed, but for its unit tests, is a new one.

    So is one whose killer has changed or is gone, and one that has survived other tests than those of now. What else a
    killer needs may have changed: `--fresh` asks anew.
    """

    def __init__(self, fresh, partly):
        self.partly = partly  # whether some of the mutants are asked for, and not all
        if fresh:
            KEPT.unlink(missing_ok=True)
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        lines = KEPT.read_text().splitlines() if KEPT.exists() else []
        self.kept = {entry["key"]: entry for entry in map(json.loads, lines)}
        self.files, self.sources = {}, {}  # digests: of each file of the core, and of the file that each test is in
        self.accepted = Accepted()

    def key(self, mutant):
        if mutant.file not in self.files:
            self.files[mutant.file] = digest(without_unit_tests((ROOT / mutant.file).read_bytes()))
        return f"{self.files[mutant.file]} {mutant.file}:{mutant.start[0]}:{mutant.start[1]}: {mutant.name}"

    def of(self, mutant, tests):
        """What became of it under these tests. Where some are asked for, the quick tests are enough for one that may survive."""
        entry = self.kept.get(self.key(mutant))
        if entry is None or entry["result"] == APART:
            return None
        if entry["result"] == "survived":
            holds = entry["tests"] in ({tests, tests + QUICKLY} if self.may_survive_quickly(mutant) else {tests})
        else:
            holds = entry.get("source") == self.sources.get(entry["by"], NO_TEST)
        return entry if holds else None

    def may_survive_quickly(self, mutant):
        return self.partly and self.accepted.entry_of(mutant) is not None

    def reasons(self, chosen, result):
        """The mutants of which this is kept, with what it is by."""
        entries = [(mutant.number, self.kept.get(self.key(mutant))) for mutant in chosen]
        return {number: entry["by"] for number, entry in entries if entry and entry["result"] == result}

    def keep(self, mutant, tests, result, by):
        source = self.sources.get(by, NO_TEST)
        entry = {"key": self.key(mutant), "result": result, "by": by, "source": source, "tests": tests}
        self.kept[entry["key"]] = entry
        with KEPT.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def survey(globs, revision, fresh, jobs, minutes):
    begin = time.monotonic()
    results = Results(fresh, partly=bool(globs or revision))
    chosen = mutants(globs, revision)
    if not chosen:
        print("there is no mutant of the core here")
        return 0 if revision else 1
    print(f"{len(chosen)} mutants", flush=True)
    # All are built, also for a few files, so that what the tests reach is recorded once. Of a change, only its own are
    # built: what was recorded before is of other code.
    everything = chosen if revision else mutants()
    unviable, apart = (results.reasons(everything, result) for result in ("unviable", APART))
    binaries, code, unviable, apart = build(Workspace("workspace"), everything, unviable, apart)
    reach = Reach(binaries, code)
    reach.record(jobs, also_slow=False)
    tests, results.sources = reach.digest(), reach.sources
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
    """It begins no mutant after `until`, and what was not begun is left out. What all quick tests have let pass is not."""
    is_over = lambda: time.monotonic() > until
    open_ones = lambda: [mutant for mutant in chosen if mutant.number not in apart and results.of(mutant, tests) is None]
    passed_quick_ones = []
    for seconds in ROUNDS:
        for mutant, outcome in each(jobs, open_ones(), lambda mutant: LATER if is_over() else killing.try_mutant(mutant, seconds)):
            if outcome is LATER:
                continue
            if outcome:
                said(mutant, results, tests, outcome)
            elif seconds > ROUNDS[0] and results.may_survive_quickly(mutant):
                said(mutant, results, tests + QUICKLY, ("survived", f"{seconds} seconds of tests"))
            else:
                print(f"not noticed so far: {mutant.file}:{mutant.line}: {mutant.name}", flush=True)
                if seconds == math.inf:
                    passed_quick_ones.append(mutant)
    if passed_quick_ones:
        killing.reach.record(jobs, also_slow=True)
    for mutant, outcome in each(jobs, passed_quick_ones, lambda mutant: killing.try_mutant(mutant, math.inf)):
        said(mutant, results, tests, outcome)
    plain = Plain(killing)
    for mutant in chosen:
        if mutant.number in apart and results.of(mutant, tests) is None and not is_over():
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
