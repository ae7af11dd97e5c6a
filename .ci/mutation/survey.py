"""The campaign as a whole: lists, builds, runs, and names the survivors."""

import json
import math
import time
from collections import Counter

from building import build
from campaign import Killing, Reach, each
from listed import Accepted, mutants
from schemata import mutated
from workspace import ALL, ROOT, UNIT, Broken, Workspace

# Seconds of quick tests for each mutant, one round after the other. The first rounds kill most. So the survivors are
# known early. The slow folders of tests are recorded only if all quick tests have let a mutant pass.
ROUNDS = (5, 40, math.inf)
LATER = object()  # the outcome of a mutant that was not begun, because the time was over
REPORT = ROOT / "target" / "ci" / "mutants.json"


def survey(globs, revision, jobs, minutes):
    begin = time.monotonic()
    chosen = mutants(globs, revision)
    if not chosen:
        print("there is no mutant of the core here")
        return 0 if revision else 1
    print(f"{len(chosen)} mutants", flush=True)
    binaries, unviable, apart = build(Workspace("workspace"), chosen)
    reach, accepted = Reach(binaries), Accepted()
    reach.record(jobs, also_slow=False)
    results = {number: ("unviable", reason) for number, reason in unviable.items()}
    # Where some mutants are asked for, the quick tests are enough for one that may survive.
    may_survive = lambda mutant: bool(globs or revision) and accepted.entry_of(mutant) is not None
    run(chosen, apart, results, may_survive, Killing(reach), jobs, time.monotonic() + 60 * minutes)
    tried = [mutant for mutant in chosen if mutant.number in results]
    if left_out := len(chosen) - len(tried):
        print(f"left out: {left_out} mutants, because more than {minutes:g} minutes are needed to try them")
    return report(tried, results, accepted, bool(globs or revision or left_out), time.monotonic() - begin)


def run(chosen, apart, results, may_survive, killing, jobs, until):
    """Begins no mutant after `until` and leaves out the rest, except those that all quick tests have let pass."""
    is_over = lambda: time.monotonic() > until
    is_open = lambda mutant: mutant.number not in apart and mutant.number not in results

    def said(mutant, outcome):
        results[mutant.number] = outcome
        print(f"{outcome[0]}: {mutant.file}:{mutant.line}: {mutant.name} ({outcome[1]})", flush=True)

    passed_quick_ones = []
    for seconds in ROUNDS:
        tries = lambda mutant: LATER if is_over() else killing.try_mutant(mutant, seconds)
        for mutant, outcome in each(jobs, [*filter(is_open, chosen)], tries):
            if outcome is LATER:
                continue
            if outcome:
                said(mutant, outcome)
            elif seconds > ROUNDS[0] and may_survive(mutant):
                said(mutant, ("survived", f"{seconds} seconds of tests"))
            else:
                print(f"not noticed so far: {mutant.file}:{mutant.line}: {mutant.name}", flush=True)
                if seconds == math.inf:
                    passed_quick_ones.append(mutant)
    if passed_quick_ones:
        killing.reach.record(jobs, also_slow=True)
    for mutant, outcome in each(jobs, passed_quick_ones, lambda mutant: killing.try_mutant(mutant, math.inf)):
        said(mutant, outcome)
    plain = Plain(killing)
    for mutant in chosen:
        if mutant.number in apart and not is_over():
            said(mutant, plain.try_mutant(mutant))


class Plain:
    """Mutants that cannot be a branch, such as a public `const fn`. Each is a build of its own."""

    def __init__(self, killing):
        self.killing = killing
        self.workspace = Workspace("plain")

    def try_mutant(self, mutant):
        text = mutated((ROOT / mutant.file).read_bytes(), mutant)
        self.workspace.follow({mutant.file: text})
        for which in (UNIT, ALL):
            try:
                binary = self.workspace.build(which)
            except Broken as broken:
                if any(span["file_name"].startswith("shared/src/") for error in broken.errors for span in error["spans"]
                       if which is UNIT):
                    return "unviable", broken.errors[0]["message"]
                return "killed", f"a program does not compile: {broken.errors[0]['message']}"
            if outcome := self.killing.try_all(mutant, binary):
                return outcome
        return "survived", "no test that passes without it fails"


def report(chosen, results, accepted, partly, seconds):
    entries = [(mutant, *results[mutant.number]) for mutant in chosen]
    counts = Counter(result for _, result, _ in entries)
    viable = len(chosen) - counts["unviable"]
    survivors = [mutant for mutant, result, _ in entries if result == "survived"]
    surprising = [mutant for mutant in survivors if accepted.entry_of(mutant) is None]
    surviving = [accepted.entry_of(mutant) for mutant in survivors]
    stale = [] if partly else [entry for entry in accepted.entries if entry not in surviving]
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps({
        "mutants": len(chosen), "unviable": counts["unviable"], "killed": counts["killed"],
        "timed out": counts["timed out"], "survived": len(survivors), "accepted": len(survivors) - len(surprising),
        "each": [{"file": mutant.file, "line": mutant.line, "mutant": mutant.name, "result": result, "by": by}
                 for mutant, result, by in entries],
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
