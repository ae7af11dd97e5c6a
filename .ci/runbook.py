"""The commands of docs/operations.md, run as they stand there but for named examples, so that the page is the test."""

import os
import re
import signal
import subprocess
import textwrap

from processes import LOGS, ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text()
ran = {}  # each block that was run, with what stood in place of its examples


def commands(heading):
    """The blocks of commands between this heading and the next."""
    section = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
    return [textwrap.dedent(block) for block in re.findall(r"^ *```sh\n(.*?)^ *```$", section, re.MULTILINE | re.DOTALL)]


def report(left_out):
    """Says of each block of the page how it was run, or by `left_out`, under its heading, why not."""
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^( *)```.*?^\1```$", "", PAGE, flags=re.MULTILINE | re.DOTALL), re.MULTILINE):
        for number, block in enumerate(commands(heading), 1):
            name = f"{heading}, block {number}, {len(block.splitlines())} lines"
            if (block in ran) == (heading in left_out):
                raise SystemExit(f"docs/operations.md, {name}: run it, or say why not")
            values = ", ".join(f"{value} for {example}" for example, value in ran.get(block, {}).items())
            print(f"  {name}: {f'not run: {left_out[heading]}' if heading in left_out else f'run with {values}' if values else 'run as it stands'}")


class Shell:
    """One bash, as the page asks for, which keeps its variables. What it says goes to target/ci/runbook.log."""

    def __init__(self, environment):
        self.log = LOGS / "runbook.log"
        self.process = subprocess.Popen(["bash"], cwd=ROOT, env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def run(self, block, values=None):
        """Runs a block, with these values in place of the page's examples; its output."""
        ran[block] = values or {}
        for example, value in ran[block].items():
            if example not in block:
                raise SystemExit(f"docs/operations.md says {example!r} no more in\n{block}")
            block = block.replace(example, value)
        # The shell reads its commands from the same input as these would.
        self.process.stdin.write(f"{{ {block}\n}} </dev/null; echo \"end of block: $?\"\n")
        self.process.stdin.flush()
        lines, end = [], None
        for line in self.process.stdout:
            if end := re.fullmatch(r"(.*)end of block: (\d+)\n", line):
                lines.append(end[1])
                break
            lines.append(line)
        output = "".join(lines)
        with self.log.open("a") as log:
            log.write(f"{block}\n{output}\n")
        if not end or end[2] != "0":
            raise SystemExit(f"a block of docs/operations.md fails:\n{block}\n{output[-3000:]}")
        return output

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
