"""Writes all mutants of a file into the file itself, each as a branch that `crate::mutant::on(NUMBER)` opens."""

import re
from dataclasses import dataclass

import tree_sitter_rust
from tree_sitter import Language, Parser

PARSER = Parser(Language(tree_sitter_rust.language()))


@dataclass
class Mutant:
    """One entry of `cargo mutants --list --json`."""

    number: int
    file: str
    line: int
    name: str  # without the place, so that it stays the same when lines above it change
    genre: str
    replacement: str
    start: tuple  # line and column, both from 1
    end: tuple
    function: str


@dataclass
class Written:
    text: bytes
    apart: dict  # the mutants that cannot be a branch, each with the reason
    unviable: dict  # the mutants that never compile, each with the reason


def write(source, mutants, without):
    """The source with every mutant in it, except those with a number in `without`."""
    return File(loosened(source), mutants, without).write()


def loosened(source):
    """The source with its own `const fn`s run by the program, and `const` blocks checked when the program comes there.

    A public function may be called in constants of others, and stays. Every other character keeps its place.
    """
    loose = re.sub(rb"(?m)^( *(?:pub\((?:super|crate)\) )?)const (fn )", rb"\1      \2", source)
    return re.sub(rb"(?m)^( *)const \{$", rb"\1{      ", loose)


def mutated(source, mutant):
    """The source as this one mutant has it."""
    starts = line_starts(source)
    start, end = (offset(source, starts, place) for place in (mutant.start, mutant.end))
    return source[:start] + mutant.replacement.encode() + source[end:]


def line_starts(source):
    starts = [0, 0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def offset(source, starts, place):
    line, column = place
    begin = starts[line]
    text = source[begin:].split(b"\n", 1)[0].decode()
    return begin + len(text[: column - 1].encode())


class File:
    def __init__(self, source, mutants, without):
        self.source = source
        self.root = PARSER.parse(source).root_node
        self.wrapped = {}  # the range of an expression -> its mutants, each with the text that it then is
        self.inserted = {}  # a place -> the texts to put there
        self.guards = {}  # the range of a match arm's guard -> the numbers that make it true, and false
        self.deleted = {}  # the end of a match arm's pattern without a guard, or the range of its guard -> the number
        self.twins = {}  # the end of a constant -> the constants that its mutants are
        self.apart, self.unviable = {}, {}
        starts = line_starts(source)
        for mutant in mutants:
            if mutant.number not in without:
                start, end = (offset(source, starts, place) for place in (mutant.start, mutant.end))
                self.take(mutant, start, end)

    def take(self, mutant, start, end):
        node = self.root.descendant_for_byte_range(start, end)
        replaced = (start, end, mutant.replacement.encode())
        if reason := never_runs(node):
            if not self.take_constant(mutant, node, replaced):
                self.apart[mutant.number] = reason
            return
        if mutant.genre == "FnValue" and "-> impl " in mutant.name:
            self.apart[mutant.number] = "the type of the function is that of its body"
            return
        match mutant.genre:
            case "FnValue":
                text = b"if %s { return %s; }\n" % (on(mutant.number), mutant.replacement.encode())
                self.inserted.setdefault(start, []).append(marked(mutant.number, text))
            case "BinaryOperator" | "UnaryOperator":
                expression = node.parent if node.child_count == 0 else node
                if expression.type == "let_chain":
                    self.unviable[mutant.number] = "only && stands in a chain of lets"
                else:
                    self.wrap(mutant, expression, replaced)
            case "StructField":
                while node.type != "struct_expression":
                    node = node.parent
                self.wrap(mutant, node, replaced)
            case "MatchArm":
                pattern = child(node, "match_pattern")
                guard = pattern.child_by_field_name("condition")
                place = (guard.start_byte, guard.end_byte) if guard else pattern.end_byte
                self.deleted[place] = mutant.number
            case "MatchArmGuard":
                if node.type in ("let_chain", "let_condition"):
                    self.apart[mutant.number] = "the guard binds names"
                else:
                    self.guards.setdefault((start, end), {})[mutant.replacement] = mutant.number
            case other:
                self.apart[mutant.number] = f"{other} is not known here"

    def take_constant(self, mutant, node, replaced):
        """Makes the mutant a constant of its own, and a branch where the functions of this file use the original."""
        while node.type != "const_item":
            node = node.parent
            if node is None or node.type == "function_item":
                return False
        start, end, text = replaced
        name = node.child_by_field_name("name")
        uses = [use for use in named(self.root, name.text) if use.start_byte != name.start_byte]
        if not uses or any(never_runs(use) for use in uses):
            return False
        twin = b"%s__%d" % (name.text, mutant.number)
        parts = ((node.start_byte, name.start_byte), (name.end_byte, start), (end, node.end_byte))
        head, middle, tail = (self.source[begin:stop] for begin, stop in parts)
        text = head + twin + middle + text + tail
        self.twins.setdefault(node.end_byte, []).append(b"\n" + marked(mutant.number, text))
        for use in uses:
            path = use.parent if use.parent.type == "scoped_identifier" else use
            self.wrap(mutant, path, (use.start_byte, use.end_byte, twin))
        return True

    def wrap(self, mutant, node, replaced):
        start, end, text = replaced
        mutated = self.source[node.start_byte:start] + text + self.source[end:node.end_byte]
        self.wrapped.setdefault((node.start_byte, node.end_byte), []).append((mutant.number, mutated))

    def write(self):
        text = self.source[: self.root.start_byte] + self.render(self.root) + self.source[self.root.end_byte:]
        left = [self.wrapped, self.inserted, self.guards, self.deleted, self.twins]
        assert not any(left), f"not written: {left}"
        return Written(text, self.apart, self.unviable)

    def render(self, node):
        """The text of this node; of nested mutants only one is on, so a mutated text has no other mutant in it."""
        out, at = [], node.start_byte
        for inner in node.children:
            out.append(self.source[at:inner.start_byte])
            if node.type == "block":
                out += self.inserted.pop(inner.start_byte, [])
            out.append(self.render(inner))
            at = inner.end_byte
        out.append(self.source[at:node.end_byte])
        span = (node.start_byte, node.end_byte)
        text = self.as_guard(span, self.as_expression(span, b"".join(out)))
        if node.type == "const_item":
            text += b"".join(self.twins.pop(node.end_byte, []))
        number = self.deleted.pop(node.end_byte, None) if node.type == "match_pattern" else None
        if number is not None:
            text += marked(number, b" if !%s" % on(number))
        return text

    def as_expression(self, span, text):
        mutants = self.wrapped.pop(span, None)
        if not mutants:
            return text
        branches = b" else ".join(b"if %s { %s }" % (on(number), marked(number, new)) for number, new in mutants)
        return b"(%s else { %s })" % (branches, text)

    def as_guard(self, span, text):
        """With the guard true, false, or its arm deleted."""
        values = self.guards.pop(span, {})
        deleted = self.deleted.pop(span, None)
        if not values and deleted is None:
            return text
        text = b"(%s)" % text
        if number := values.get("false"):
            text = b"%s && %s" % (marked(number, b"!" + on(number)), text)
        if number := values.get("true"):
            text = b"(%s || %s)" % (marked(number, on(number)), text)
        if deleted is not None:
            text = b"%s && %s" % (marked(deleted, b"!" + on(deleted)), text)
        return text


def on(number):
    return b"crate::mutant::on(%d)" % number


def marked(number, text):
    """Between comments, in which a place that the compiler names is looked up."""
    return b"/*<%d*/%s/*%d>*/" % (number, text, number)


def child(node, kind):
    return next(inner for inner in node.children if inner.type == kind)


def named(node, name):
    """The identifiers with this name."""
    if node.type == "identifier" and node.text == name:
        yield node
    for inner in node.children:
        yield from named(inner, name)


def never_runs(node):
    """Why nothing that is asked at run time can stand here."""
    while node := node.parent:
        match node.type:
            case "const_item" | "static_item" | "const_block" | "array_type":
                return "a constant"
            case "token_tree":
                return "the input of a macro"
            case "function_item":
                modifiers = [inner for inner in node.children if inner.type == "function_modifiers"]
                return "a const fn" if any(b"const" in inner.text for inner in modifiers) else None
    return None
