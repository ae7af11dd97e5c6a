"""The programs of a check: writers in Python, and Fencepost. Each reports its changes in one line of JSON."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILT = ROOT / "target" / "debug"
PLACEHOLDERS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "us-east-1"}
PATIENCE = 600  # seconds; ends a check that hangs


def environment():
    endpoint = os.environ.get("DYNAMODB_ENDPOINT")
    if not endpoint:
        raise SystemExit("DYNAMODB_ENDPOINT is not set: run this through .ci/with-engine")
    hidden = ("AWS_PROFILE", "AWS_SESSION_TOKEN")
    inherited = {name: value for name, value in os.environ.items() if name not in hidden}
    return inherited | PLACEHOLDERS | {"AWS_ENDPOINT_URL_DYNAMODB": endpoint, "PYTHONDONTWRITEBYTECODE": "1"}


class Program:
    """A program that runs until it has done its work, or until it is told to end. Its stderr goes to ours."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen([str(word) for word in command], cwd=ROOT, env=environment(), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def is_at_work(self):
        return self.process.poll() is None

    def results(self):
        """Ends its input, waits for its end, and gives all lines that it says."""
        try:
            said, _ = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired as error:
            self.process.kill()
            raise SystemExit(f"{self.name} did not end within {PATIENCE} s") from error
        if self.process.returncode != 0:
            raise SystemExit(f"{self.name} ended with {self.process.returncode}: {said}")
        return [json.loads(line) for line in said.splitlines()]

    def result(self):
        """The same, but the last line only."""
        return self.results()[-1]


def foreign(kind, table, seed, items, count):
    writer = [sys.executable, ROOT / ".ci" / "mixed_writers" / "writer.py"]
    if kind.startswith("toasty"):
        writer = [ROOT / "target" / "ci" / "toasty" / "debug" / "toasty-writer"]
    return Program(kind, [*writer, kind, table, seed, items, count])


def fencepost(*arguments):
    """A program that uses the crate."""
    return Program(f"mixed_writer {arguments[0]}", [BUILT / "mixed_writer", *arguments])


def operator(command, table, *options):
    """The tool `fencepost` on a table with an attribute of PynamoDB as its version."""
    set_up = ["--table", table, "--version-attribute", "version", "--deletes", "sweep", "--json"]
    return Program(f"fencepost {command}", [BUILT / "fencepost", command, *set_up, *options])


def wrong_counts(held, foreign_results, our_results):
    """The items with less than the acknowledged changes, or with more than the acknowledged and the unknown ones."""
    acknowledged = sum((Counter(one["acknowledged"]) for one in foreign_results + our_results), Counter())
    unknown = sum((Counter(one["unknown"]) for one in our_results), Counter())
    return [f"{key} holds {count}; acknowledged {acknowledged[key]}, unknown {unknown[key]}"
            for key, count in held.items() if not acknowledged[key] <= count <= acknowledged[key] + unknown[key]]
