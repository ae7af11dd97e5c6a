"""Builds the tests with all mutants in them, and finds out which mutants do not compile."""

import re
from collections import defaultdict

from listed import core
from schemata import loosened, write
from workspace import ALL, ROOT, UNIT, Broken

LIBRARY = "shared/src/lib.rs"
SWITCH = "shared/src/mutant.rs"
# The compiler's errors for a mutant that may be impossible only beside its original: borrows, moves, unnamed types.
BESIDE = {"E0373", "E0381", "E0382", "E0499", "E0502", "E0503", "E0505", "E0506", "E0507", "E0515", "E0521", "E0597",
          "E0716", "E0282", "E0283", "E0284"}


def build(workspace, mutants):
    """Gives the binaries, the mutants that do not compile, and those that are built apart."""
    unviable, apart = {}, {}
    while True:
        texts = schemata(mutants, unviable, apart)
        workspace.follow(texts)
        try:
            binaries = [workspace.build(which) for which in (UNIT, ALL)]
            # Not the binary itself is asked: where no test reaches a mutant, the linker leaves its branch out.
            if not all(SWITCH in sources for binary in binaries for sources in binary.sources):
                raise SystemExit("cargo took what was built without mutants; remove target/mutants and begin again")
            return binaries, unviable, apart
        except Broken as broken:
            guilty = blame(broken.errors, texts)
            if not guilty:
                raise SystemExit(f"this does not compile, and no mutant is in it:\n{broken}") from None
            for number, error in guilty.items():
                beside = error["code"] and error["code"]["code"] in BESIDE
                (apart if beside else unviable)[number] = error["message"]
            print(f"{len(guilty)} mutants do not compile", flush=True)


def schemata(mutants, unviable, apart):
    """The files with all mutants in them. Adds those to `unviable` and `apart` that cannot be written."""
    files = defaultdict(list)
    for mutant in mutants:
        files[mutant.file].append(mutant)
    texts = {file: loosened((ROOT / file).read_bytes()) for file in core()}
    for file, inside in files.items():
        written = write((ROOT / file).read_bytes(), inside, unviable.keys() | apart.keys())
        texts[file] = written.text
        unviable |= written.unviable
        apart |= written.apart
    library = texts.get(LIBRARY, (ROOT / LIBRARY).read_bytes())
    texts[LIBRARY] = library + b"\n#[allow(missing_docs, clippy::all)]\npub mod mutant;\n"
    switch = (ROOT / ".ci" / "mutation" / "mutant.rs").read_text()
    texts[SWITCH] = switch.replace("COUNT", str(max(mutant.number for mutant in mutants) + 1)).encode()
    return texts


def blame(errors, texts):
    """Which mutants the errors are in: number -> error."""
    places = {file: regions(text) for file, text in texts.items()}
    guilty = {}
    for error in errors:
        spans = list(all_spans(error))
        found = {number for span in spans if span["is_primary"] for number in inside(span, places)}
        found = found or {number for span in spans for number in inside(span, places)}
        if error["code"] and error["code"]["code"] == "E0004":  # a match that no longer has an arm for everything
            found = found or {number for span in spans for number in arms(span, texts)}
        guilty |= {number: error for number in found}
    return guilty


def all_spans(error):
    for span in error["spans"]:
        while span:
            yield span
            span = span["expansion"] and span["expansion"]["span"]
    for note in error["children"]:
        yield from (dict(span, is_primary=False) for span in all_spans(note))


def regions(text):
    """Where each mutant stands in the text: begin, end, number."""
    begun, found = {}, []
    for mark in re.finditer(rb"/\*<(\d+)\*/|/\*(\d+)>\*/", text):
        if mark[1]:
            begun[int(mark[1])] = mark.start()
        else:
            found.append((begun.pop(int(mark[2])), mark.end(), int(mark[2])))
    return found


def inside(span, places):
    """The mutants with the span in their text."""
    all_here = places.get(span["file_name"], [])
    return [number for start, end, number in all_here if start <= span["byte_start"] and span["byte_end"] <= end]


def arms(span, texts):
    """The deleted arms of the match over the expression at this span."""
    text = texts.get(span["file_name"], b"")
    rest = text[span["byte_end"]:]
    depth, end = 0, len(rest)
    for place, byte in enumerate(rest):
        depth += (byte == ord("{")) - (byte == ord("}"))
        if byte == ord("}") and depth == 0:
            end = place
            break
    return [int(number) for number in re.findall(rb"/\*<(\d+)\*/ if !crate", rest[:end])]
