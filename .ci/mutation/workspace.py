"""A copy of the workspace, the builds of cargo, and the tests in them."""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OWN = ROOT / "target" / "mutants"
# The test binaries against mutants: the arguments of cargo, the source, and the folder where cargo runs it. No package
# is chosen (`-p`): cargo would switch features on for this package alone, and build all dependencies once more.
UNIT = ("unit", ["--lib"], "shared/src/lib.rs", "shared")
ALL = ("all", ["--test", "all"], "tests/main.rs", "tests")
CHOSEN = "FENCEPOST_MUTANT"  # the variable that says to a process which mutant it is (mutant.rs)
MEMORY = 8 << 30  # bytes; a mutant may collect without end


class Broken(Exception):
    """The compiler's output about a failed build."""

    def __init__(self, errors):
        super().__init__("".join(error["rendered"] or error["message"] for error in errors))
        self.errors = errors


class Workspace:
    """A copy, which follows the sources without touching the files that are the same."""

    def __init__(self, name):
        self.folder = OWN / name
        # Of its own: cargo gives the binaries of two copies the same names, and takes the one for the other.
        self.target = OWN / f"{name}-target"

    def follow(self, changed):
        """`changed`: texts that stand in the copy in place of a file, or beside the files."""
        if link_dependencies(self.target):
            shutil.rmtree(self.folder, ignore_errors=True)  # then all is newer than the builds of the workspace itself
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                check=True, capture_output=True).stdout
        files = {name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()} | changed.keys()
        for name in files:
            text = changed[name] if name in changed else (ROOT / name).read_bytes()
            put(self.folder / name, text)
        for path in [path for path in self.folder.rglob("*") if path.is_file()]:
            if str(path.relative_to(self.folder)) not in files:
                path.unlink()

    def build(self, which):
        """Builds this binary of tests; gives where it is."""
        name, arguments, source, runs_in = which
        command = ["cargo", "test", "--locked", "--no-run", "--message-format=json", *arguments]
        said = subprocess.run(command, cwd=self.folder, env=os.environ | {"CARGO_TARGET_DIR": str(self.target)},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        messages = [json.loads(line) for line in said.stdout.splitlines() if line.startswith("{")]
        if said.returncode != 0:
            errors = [message["message"] for message in messages if message["reason"] == "compiler-message"]
            raise Broken([error for error in errors if error["level"] == "error"] or
                         [{"rendered": said.stderr, "message": "", "code": None, "spans": [], "children": []}])
        built = [message["executable"] for message in messages
                 if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]
                 and message["target"]["src_path"] == str(self.folder / source)]
        assert len(built) == 1, f"{name}: {built}"
        crate = {Path(file) for message in messages if message["reason"] == "compiler-artifact"
                 and message["target"]["src_path"] == str(self.folder / UNIT[2]) for file in message["filenames"]}
        sources = [file.with_name(file.stem.removeprefix("lib") + ".d").read_text() for file in crate]
        return Binary(name, Path(built[0]), self.folder / runs_in, sources)


class Binary:
    running = set()  # process groups
    is_over = False  # whether the script ends

    def __init__(self, name, path, folder, sources):
        self.name, self.path, self.folder = name, path, folder
        self.sources = sources  # the sources of each build of the crate in it, by the compiler

    def tests(self):
        said = subprocess.run([self.path, "--list", "--format", "terse"], cwd=self.folder, env=self.environment({}),
                              check=True, capture_output=True, text=True)
        return [line.removesuffix(": test") for line in said.stdout.splitlines() if line.endswith(": test")]

    def environment(self, more):
        return os.environ | {"CARGO_MANIFEST_DIR": str(self.folder), "RUST_TEST_THREADS": "1", "RUST_BACKTRACE": "0"} | more

    def run(self, tests, seconds, more):
        """Runs these tests in one process.

        Gives whether they passed (None if they took too long), how long they took, and which failed.
        """
        said = own_file("said")
        begin = time.monotonic()
        with said.open("wb") as output:
            process = subprocess.Popen([self.path, "--exact", *tests], cwd=self.folder,
                                       env=self.environment(more), stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
            self.running.add(process.pid)
            if Binary.is_over:
                kill(process.pid)
            try:
                passed = process.wait(seconds) == 0
            except subprocess.TimeoutExpired:
                passed = None
            finally:
                kill(process.pid)
                self.running.discard(process.pid)
                process.wait()
        failed = re.findall(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", said.read_text(errors="replace"), re.M)
        return passed, time.monotonic() - begin, failed

    @classmethod
    def end_all(cls):
        cls.is_over = True
        for group in list(cls.running):
            kill(group)


def kill(group):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def own_file(name):
    """A file that only this thread writes."""
    return OWN / f"{name}-{threading.get_ident()}.txt"


def put(path, text):
    if not path.is_file() or path.read_bytes() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def link_or_copy(file, to):
    copy = shutil.copy2 if file.endswith(".d") else os.link
    copy(file, to)


def link_dependencies(target):
    """Begins with the dependencies as `cargo test` has built them. Only files that cargo writes in place are copied.

    Gives whether it did.
    """
    built = ROOT / "target" / "debug"
    if target.exists() or not built.exists():
        return False
    print("linking the dependencies that are built already", file=sys.stderr)
    for folder, copy in ((".fingerprint", shutil.copy2), ("build", shutil.copy2), ("deps", link_or_copy)):
        if (built / folder).exists():
            with contextlib.suppress(shutil.Error):  # another build removes files meanwhile; cargo builds them again
                shutil.copytree(built / folder, target / "debug" / folder, copy_function=copy, symlinks=True)
    return True
