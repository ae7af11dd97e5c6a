"""Processes that a check of CI starts, and the ports that they get."""

import contextlib
import os
import platform
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "target" / "ci"
ARCHITECTURE = {"aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "x86_64")  # as Lambda calls this machine's

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the started processes end too


def free_port():
    """A free port that no test gets meanwhile: the system gives out those from 32768 on
    (`net.ipv4.ip_local_port_range`), to listeners that ask for any port and to clients."""
    while True:
        port = random.randrange(20000, 32768)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def started(name, command, environment=None):
    """A process with its output in target/ci/NAME.log; it and all that it started end with the block."""
    LOGS.mkdir(parents=True, exist_ok=True)
    path = LOGS / f"{name}.log"
    with path.open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT, start_new_session=True)
    process.log = path
    try:
        yield process
    finally:
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)


def wait_until(ready, process, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := ready():
            return result
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit(f"{process.args[0]} does not start:\n{process.log.read_text()}")


def printed(pattern, process):
    """The first group of the pattern, as soon as the process has printed it. The time is that of a build."""
    return wait_until(lambda: re.search(pattern, process.log.read_text(), re.M), process, 1800)[1]
