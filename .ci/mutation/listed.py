"""The mutants of the core, as cargo-mutants lists them, and those that may survive."""

import fnmatch
import json
import os
import re
import shutil
import subprocess
import tomllib

from schemata import Mutant
from workspace import ROOT

# The basis of the promises. The rest of the crate is around it: JSON, routes, Lambda, maintenance.
CORE = ["shared/src/protocol/*", "shared/src/table/*", "shared/src/transact/*", "shared/src/lease/*", "shared/src/lww.rs",
        "shared/src/idempotency.rs", "shared/src/throttling.rs", "shared/src/http/preconditions.rs",
        "shared/src/http/validator.rs"]
VERSION = "27.1.0"
TOOL = ROOT / "target" / "ci" / "cargo-mutants"
ACCEPTED = ROOT / ".ci" / "mutation" / "accepted.toml"


def tool():
    """The installed cargo-mutants, if it is of this version; otherwise one in target/ci."""
    installed = shutil.which("cargo-mutants")
    if installed:
        said = subprocess.run([installed, "mutants", "--version"], capture_output=True, text=True)
        if said.stdout.split()[-1:] == [VERSION]:
            return installed
    if not (TOOL / "bin" / "cargo-mutants").exists():
        subprocess.run(["cargo", "install", "--quiet", "--debug", "--locked", "--root", TOOL, f"cargo-mutants@{VERSION}"], check=True)
    return TOOL / "bin" / "cargo-mutants"


def mutants(globs=None, revision=None):
    """All mutants of the core, or those in files that match, on lines that are not as in the revision."""
    for glob in CORE:
        assert any(matches(file, [glob]) for file in core()), f"CORE names {glob}, and no file matches"
    changed = changed_lines(revision) if revision else None
    if changed is not None and not any(matches(file, CORE) for file in changed):
        return []
    listed = subprocess.run([tool(), "mutants", "--list", "--json", "-p", "fencepost"], cwd=ROOT, check=True,
                            capture_output=True, env=os.environ | {"NO_COLOR": "1"})
    found = []
    for number, entry in enumerate(json.loads(listed.stdout), 1):
        start, end = (tuple(entry["span"][side][part] for part in ("line", "column")) for side in ("start", "end"))
        name = re.sub(r"^\S+:\d+:\d+: ", "", entry["name"])
        function = (entry.get("function") or {}).get("function_name", "")
        mutant = Mutant(number, entry["file"], start[0], name, entry["genre"], entry["replacement"], start, end, function)
        if (matches(mutant.file, CORE) and (not globs or matches(mutant.file, globs))
                and (changed is None or changed.get(mutant.file, set()) & set(range(start[0], end[0] + 1)))):
            found.append(mutant)
    return found


def core():
    """The files of the core."""
    files = [str(path.relative_to(ROOT)) for path in (ROOT / "shared" / "src").rglob("*.rs")]
    return [file for file in files if matches(file, CORE)]


def matches(file, globs):
    return any(fnmatch.fnmatch(file, glob) for glob in globs)


def changed_lines(revision):
    """The lines of each file that the revision does not have. A new file has only such lines, also before it is added."""
    diff = subprocess.run(["git", "diff", "--unified=0", "--no-color", "--no-ext-diff", revision, "--", "shared/src"],
                          cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines, file = {}, None
    for line in diff.splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ b/")
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            lines.setdefault(file, set()).update(range(first, first + count))
    new = subprocess.run(["git", "ls-files", "-z", "--others", "--exclude-standard", "--", "shared/src"], cwd=ROOT, check=True,
                         capture_output=True, text=True).stdout
    for file in filter(None, new.split("\0")):
        lines[file] = set(range(1, len((ROOT / file).read_text().splitlines()) + 1))
    return lines


class Accepted:
    """The mutants that survive and cannot matter."""

    def __init__(self):
        self.entries = tomllib.loads(ACCEPTED.read_text()).get("mutant", []) if ACCEPTED.exists() else []
        for entry in self.entries:
            assert set(entry) == {"file", "mutant", "line", "reason"}, f"{ACCEPTED}: {entry}"

    def entry_of(self, mutant):
        text = (ROOT / mutant.file).read_text().splitlines()[mutant.line - 1].strip()
        for entry in self.entries:
            if (entry["file"], entry["mutant"], entry["line"]) == (mutant.file, mutant.name, text):
                return entry
        return None
