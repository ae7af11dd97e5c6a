"""The functions as Lambda runs them and their engine: processes that may die at any time, and how much they take."""

import http.server
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

from clients import Broken
from processes import LOGS, ROOT, free_port

TIMEOUT = 10  # seconds, as in template.yaml
EVERY = 2  # seconds between two measurements
BINARIES = ROOT / "target" / "debug"


class Invocation:
    def __init__(self, event):
        self.event, self.done, self.answer = event, threading.Event(), None

    def finish(self, answer):
        if not self.done.is_set():
            self.answer = answer
            self.done.set()


class Instance:
    """One process with a Runtime API of its own. It is started again when it has died."""

    def __init__(self, name, number, events, environment):
        self.name, self.label, self.events = name, f"{name}-{number}", events
        self.current, self.process, self.invoked, self.stopping = None, None, 0, False
        self.starting, self.broken = threading.Lock(), None
        instance = self

        class Api(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                event = instance.next(self)
                if event is not None:
                    deadline = str(int((time.time() + TIMEOUT) * 1000))
                    self.reply(200, json.dumps(event).encode(), {
                        "Lambda-Runtime-Aws-Request-Id": f"{instance.label}-{instance.invoked}",
                        "Lambda-Runtime-Deadline-Ms": deadline,
                        "Lambda-Runtime-Invoked-Function-Arn": f"arn:aws:lambda:eu-west-1:123456789012:function:{instance.name}",
                    })

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if self.path.endswith("/error"):
                    instance.broken = f"{instance.label} failed: {body.decode(errors='replace')}"
                # The answer of a process that was killed right after it is no answer to the next one's event.
                elif f"/{instance.label}-{instance.invoked}/" in self.path:
                    current, instance.current = instance.current, None
                    if current:
                        current.finish(json.loads(body))
                self.reply(202, b"", {})

            def reply(self, status, body, headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def handle(self):
                try:
                    super().handle()
                except OSError:
                    pass  # The process was killed.

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.environment = dict(
            environment, AWS_LAMBDA_RUNTIME_API=f"127.0.0.1:{self.server.server_address[1]}", AWS_LAMBDA_FUNCTION_NAME=name,
            AWS_LAMBDA_FUNCTION_MEMORY_SIZE="128", AWS_LAMBDA_FUNCTION_VERSION="$LATEST", FUNCTION_TIMEOUT_SECONDS=str(TIMEOUT))
        self.start()
        threading.Thread(target=self.watch, daemon=True).start()

    def start(self):
        # Held until the process is known by which the Runtime API tells its connections from those of the one before.
        with self.starting, (LOGS / f"soak-{self.label}.log").open("ab") as log:
            self.process = subprocess.Popen([BINARIES / self.name], env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT)

    def watch(self):
        """Starts the process again when it has died. Its event has no answer, as at API Gateway."""
        while not self.stopping:
            status = self.process.wait()
            if self.stopping:
                return
            if status != -signal.SIGKILL:
                self.broken = f"{self.label} ended by itself with {status}: see target/ci/soak-{self.label}.log"
                return
            current, self.current = self.current, None
            if current:
                current.finish(None)
            self.start()

    def next(self, connection):
        with self.starting:
            process = self.process
        while not self.stopping and process is self.process and process.poll() is None:
            try:
                invocation = self.events.get(timeout=0.5)
            except queue.Empty:
                continue
            if process is not self.process or process.poll() is not None:
                self.events.put(invocation)
                break
            self.current = invocation
            self.invoked += 1
            return invocation.event
        connection.close_connection = True
        return None

    def kill(self):
        self.process.kill()

    def stop(self):
        self.stopping = True
        self.process.kill()
        self.process.wait(10)


class Functions:
    """Instances of each function. Those with the number 0 live from start to end; the others are killed."""

    def __init__(self, names, each, environment):
        self.events = {name: queue.Queue() for name in names}
        self.instances = [Instance(name, number, self.events[name], environment) for name in names for number in range(each)]
        self.given_up = None  # why nothing goes on

    def invoke(self, name, event):
        """The answer, or None: the function died, or took longer than API Gateway waits."""
        invocation = Invocation(event)
        self.events[name].put(invocation)
        invocation.done.wait(29)
        return invocation.answer

    def are_busy(self):
        return any(not events.empty() for events in self.events.values()) or any(one.current for one in self.instances)

    def broken(self):
        """The processes that no kill has ended."""
        broken = [instance.broken for instance in self.instances if instance.broken]
        return broken + ([self.given_up] if self.given_up else [])

    def mortal(self):
        return [instance for instance in self.instances if not instance.label.endswith("-0")]

    def stop(self):
        for instance in self.instances:
            instance.stop()


class Engine:
    """`cargo dev --dynamodb-only` with its data in a folder. It is started again when it has been killed."""

    def __init__(self):
        self.port, self.data = free_port(), LOGS / "soak-data"
        self.log = LOGS / "soak-engine.log"
        shutil.rmtree(self.data, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        self.start()

    def start(self):
        begin = self.log.stat().st_size if self.log.exists() else 0
        command = [BINARIES / "dev", "--dynamodb-only", "--dynamodb-port", str(self.port), "--data", str(self.data)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        end = time.monotonic() + 600
        while "Ctrl-C stops it" not in (said := self.log.read_text()[begin:]):
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise Broken(f"the engine does not start:\n{said}")
            time.sleep(0.05)
        self.variables = dict(re.findall(r"^  ([A-Z_]+)=(.*)$", said, re.M))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def restart(self):
        self.kill()
        time.sleep(0.5)
        self.start()


class Samples:
    """Resident memory in KiB and open descriptors of processes, by the name of their work."""

    def __init__(self, processes):
        self.processes, self.taken, self.begun, self.ended = processes, {}, time.monotonic(), False
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while not self.ended:
            for name, process in self.processes().items():
                if sample := sample_of(process.pid):
                    self.taken.setdefault(name, []).append((time.monotonic() - self.begun, *sample))
            time.sleep(EVERY)

    def last_ago(self):
        """How many seconds ago a process was measured for the last time: that of which this is the longest."""
        return time.monotonic() - self.begun - min(samples[-1][0] for samples in self.taken.values())

    def halves(self, name):
        """The highest of both in the first half of the run and in the second."""
        self.ended = True
        middle = max(taken for samples in self.taken.values() for taken, *_ in samples) / 2
        most = lambda samples: tuple(max(column) for column in zip(*samples)) if samples else (0, 0)
        first = most([sample[1:] for sample in self.taken[name] if sample[0] < middle])
        return first, most([sample[1:] for sample in self.taken[name] if sample[0] >= middle])


def sample_of(pid):
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]), len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, IndexError):
        return None  # It was killed meanwhile.
