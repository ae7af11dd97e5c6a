"""Which test reaches which mutants, and which mutant each test kills."""

import math
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

from workspace import CHOSEN, Binary, own_file

LIMIT = 600.0  # seconds that one test may take without a mutant
# The folders of tests that take longest. They run only for mutants unnoticed by all other tests.
SLOW = ("all histories::", "all maintenance::", "all repository::")


def each(jobs, items, do):
    """Does this with each, so many at a time, and gives it with its result. Running work is ended with the script."""
    with ThreadPoolExecutor(jobs) as pool:
        try:
            yield from pool.map(lambda item: (item, do(item)), items)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            Binary.end_all()
            raise


class Reach:
    """Each test without a mutant: the time that it takes and the mutants that it reaches."""

    def __init__(self, binaries):
        self.binaries = {binary.name: binary for binary in binaries}
        self.names = [f"{binary.name} {name}" for binary in binaries for name in binary.tests()]
        self.tests = {}

    def is_whole(self):
        return len(self.tests) == len(self.names)

    def record(self, jobs, also_slow):
        missing = [name for name in self.names if name not in self.tests and (also_slow or not name.startswith(SLOW))]
        for count, (name, recorded) in enumerate(each(jobs, missing, self.recorded), 1):
            self.tests[name] = recorded
            if not recorded["passed"]:
                print(f"not used, because it fails without a mutant: {name}", flush=True)
            if count % 50 == 0 or count == len(missing):
                print(f"{count} of {len(missing)} tests recorded", flush=True)

    def recorded(self, name):
        log = own_file("reached")
        log.unlink(missing_ok=True)
        binary, test = self.binaries[name.split()[0]], name.split()[1]
        passed, seconds, _ = binary.run([test], LIMIT, {"FENCEPOST_MUTANTS_REACHED": str(log)})
        reached = {int(line) for line in log.read_text().split()} if log.exists() else set()
        return {"passed": bool(passed), "seconds": seconds, "reached": reached}

    def reaching(self, number):
        return [name for name, test in self.tests.items() if test["passed"] and number in test["reached"]]


class Hangs(Exception):
    """A mutant that takes long; it is tried with patience later."""


class Killing:
    """Lets the tests run against the mutants, those first that killed a mutant near it, then the fast ones."""

    def __init__(self, reach):
        self.reach = reach
        self.near, self.learning = defaultdict(Counter), threading.Lock()
        self.passed = defaultdict(set)  # the tests that a mutant has survived in the rounds before

    def learn(self, mutant, killer):
        with self.learning:
            for place in (mutant.function, mutant.file):
                self.near[place][killer] += 1

    def try_mutant(self, mutant, seconds):
        """Gives its fate and its killer. Gives nothing if this would take longer than so many seconds."""
        names = [name for name in self.reach.reaching(mutant.number) if name not in self.passed[mutant.number]]
        try:
            if outcome := self.try_tests(mutant, names, self.reach.binaries, seconds):
                return outcome
        except Hangs:
            return None
        if not self.reach.is_whole() or sum(self.reach.tests[name]["seconds"] for name in names) > seconds:
            return None
        return "survived", f"{len(self.reach.reaching(mutant.number))} tests reach it"

    def try_all(self, mutant, binary):
        """Runs all tests of a binary that has no other mutant."""
        names = [name for name, test in self.reach.tests.items() if test["passed"] and name.split()[0] == binary.name]
        return self.try_tests(mutant, names, {binary.name: binary}, math.inf)

    def try_tests(self, mutant, names, binaries, at_most):
        seconds = {name: self.reach.tests[name]["seconds"] for name in names}
        with self.learning:
            here, around = self.near[mutant.function].most_common(4), self.near[mutant.file].most_common(6)
        proven = [name for name, _ in here if name in seconds]
        proven += [name for name, _ in around if name in seconds and name not in proven]
        quick = [name for name in proven if seconds[name] < 3]
        rest = sorted((name for name in names if name not in quick), key=seconds.get)
        for batch in batches(quick, rest, seconds):
            at_most -= sum(seconds[name] for name in batch)
            if at_most < 0:
                return None
            if result := self.try_batch(mutant, batch, binaries, at_most < math.inf):
                self.learn(mutant, result[1])
                return result
            self.passed[mutant.number].update(batch)
        return None

    def try_batch(self, mutant, batch, binaries, hurries):
        """Gives nothing if the mutant survives them. Raises if one may hang and there is no time to make sure."""
        binary = binaries[batch[0].split()[0]]
        normal = sum(self.reach.tests[name]["seconds"] for name in batch)
        tests = [name.split()[1] for name in batch]
        chosen = {CHOSEN: str(mutant.number)}
        for limit in (4 + 5 * normal, 30 + 20 * normal):
            passed, _, failed = binary.run(tests, limit, chosen)
            if passed:
                return None
            if passed is False:
                return "killed", f"{binary.name} {failed[0]}" if failed else batch[0]
            if hurries:
                raise Hangs
            if len(batch) > 1:
                # Which of them hangs is found by each alone.
                return next(filter(None, (self.try_batch(mutant, [name], binaries, False) for name in batch)), None)
        return "timed out", batch[0]


def batches(quick, rest, seconds):
    """Ever longer lists of tests of one binary."""
    limit = 1.0
    for names in (quick, rest):
        batch, length = [], 0.0
        for name in names:
            if batch and (length + seconds[name] > limit or name.split()[0] != batch[0].split()[0]):
                yield batch
                batch, length = [], 0.0
                limit = min(limit * 1.5, 20.0)
            batch.append(name)
            length += seconds[name]
        if batch:
            yield batch
