"""What each process takes of memory and of file descriptors, and whether it takes more and more."""

import os
import threading
import time
from pathlib import Path

EVERY = 2  # seconds


class Samples:
    """Resident memory in KiB and open descriptors of processes, by the name of what they do."""

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
