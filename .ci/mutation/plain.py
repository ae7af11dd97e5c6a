"""Mutants that cannot be a branch, such as a public `const fn`. Each is a build of its own."""

from schemata import mutated
from workspace import ALL, ROOT, UNIT, Broken, Workspace


class Plain:
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
