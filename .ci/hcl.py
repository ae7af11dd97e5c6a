"""Evaluates the part of Terraform's language that deploy/terraform is written in, over the tree of python-hcl2.

A reference to an attribute of a resource is its address: `aws_lambda_alias.this["id"].arn` is the text
`aws_lambda_alias.id.arn`, and without a key the label stands in its place.
"""
import json
import re
from functools import cache

import hcl2
import yaml
from lark import Tree

WRONG = (KeyError, IndexError, TypeError, ValueError)  # what `try` and `can` catch
OPERATORS = {"==": lambda a, b: a == b, "!=": lambda a, b: a != b, "&&": lambda a, b: a and b, "||": lambda a, b: a or b}
FUNCTIONS = {
    "alltrue": all,
    "compact": lambda values: [value for value in values if value],
    "contains": lambda values, value: value in values,
    "file": lambda path: open(path, encoding="utf-8").read(),
    "filebase64sha256": lambda path: f"hash of {path}",
    "jsonencode": json.dumps,
    "lookup": lambda values, key, default: values.get(str(key), default),
    "merge": lambda *maps: {key: value for one in maps for key, value in one.items()},
    "one": lambda values: values[0] if values else None,
    "replace": lambda text, part, new: re.sub(part[1:-1], new, text) if re.fullmatch("/.+/", part) else text.replace(part, new),
    "templatestring": lambda text, names: evaluate(trees(hcl2.parses_to_tree(f"a = {json.dumps(text)}\n").children[0])[0].children[-1], names),
    "toset": lambda values: {value: value for value in values},
    "tostring": lambda value: value if isinstance(value, str) else json.dumps(value),
    "trimsuffix": str.removesuffix,
    "values": lambda values: list(values.values()),
    "yamldecode": yaml.safe_load,
}


class Lazy:
    """Looks a part up when it is asked for, because locals and resources name each other in any order."""

    def __init__(self, get, keys=lambda: ()):
        self.get, self.keys = cache(get), keys

    def __getitem__(self, key):
        return self.get(key)

    def items(self):
        return [(key, self.get(key)) for key in self.keys()]


def trees(tree):
    return [child for child in tree.children if isinstance(child, Tree) and child.data != "new_line_or_comment"]


def pairs(values):
    return values.items() if hasattr(values, "items") else enumerate(values)


def attempt(arguments, at):
    for argument in arguments:
        try:
            return evaluate(argument, at)
        except WRONG as error:
            last = error
    raise last


def call(name, arguments, spreads, at):
    if name == "try":
        return attempt(arguments, at)
    if name == "can":
        return attempt([*arguments, Tree("missing", [])], at) is not Tree
    values = [evaluate(argument, at) for argument in arguments]
    return FUNCTIONS[name](*values[:-1], *values[-1]) if spreads else FUNCTIONS[name](*values)


def loop(tree, at):
    intro, *results = trees(tree)
    *names, over = trees(intro)
    condition = trees(results.pop())[0] if results[-1].data == "for_cond" else None
    places = [at | {name.children[0].value: part for name, part in zip(names, pair[-len(names):])} for pair in pairs(evaluate(over, at))]
    found = [[evaluate(one, place) for one in results] for place in places if condition is None or evaluate(condition, place)]
    return dict(found) if tree.data == "for_object_expr" else [value for value, in found]


def key_of(tree, at):
    term = trees(tree)[0]
    name = trees(term)[0] if term.data == "expr_term" else term
    return name.children[0].value if name.data == "identifier" else evaluate(term, at)


def operate(inner, at):
    operator, left = trees(inner[1])[0].children[0].value, evaluate(inner[0], at)
    return left if left == {"&&": False, "||": True}.get(operator) else OPERATORS[operator](left, evaluate(inner[1], at))


def index(value, key):
    return {}[key] if isinstance(value, str) else value[key]  # a text has no parts


EXPRESSIONS = {
    "missing": lambda tree, inner, at: Tree,
    "int_lit": lambda tree, inner, at: int(tree.children[0]),
    "literal_value": lambda tree, inner, at: json.loads(tree.children[0]),
    "identifier": lambda tree, inner, at: at[tree.children[0].value],
    "string": lambda tree, inner, at: "".join(FUNCTIONS["tostring"](evaluate(part, at)) for part in inner),
    "string_part": lambda tree, inner, at: evaluate(inner[0], at) if inner else json.loads(f'"{tree.children[0]}"'.replace("$${", "${")),
    "interpolation": lambda tree, inner, at: evaluate(inner[0], at),
    "expr_term": lambda tree, inner, at: evaluate(inner[0], at),
    "binary_term": lambda tree, inner, at: evaluate(inner[1], at),
    "binary_op": lambda tree, inner, at: operate(inner, at),
    "unary_op": lambda tree, inner, at: not evaluate(inner[0], at),
    "conditional": lambda tree, inner, at: evaluate(inner[1 if evaluate(inner[0], at) else 2], at),
    "tuple": lambda tree, inner, at: [evaluate(one, at) for one in inner],
    "object": lambda tree, inner, at: {key_of(trees(one)[0], at): evaluate(trees(one)[1], at) for one in inner},
    "get_attr_expr_term": lambda tree, inner, at: evaluate(inner[0], at)[trees(inner[1])[0].children[0].value],
    "index_expr_term": lambda tree, inner, at: index(evaluate(inner[0], at), evaluate(trees(inner[1])[0], at)),
    "function_call": lambda tree, inner, at: call(inner[0].children[0].value, trees(inner[1]), "..." in inner[1].children, at),
    "for_tuple_expr": lambda tree, inner, at: loop(tree, at),
    "for_object_expr": lambda tree, inner, at: loop(tree, at),
}


def evaluate(tree, at):
    return EXPRESSIONS[tree.data](tree, trees(tree), at)


def body(tree):
    """The attributes and blocks of a body: name, labels, and the expression or the body."""
    text = lambda part: "".join(part.scan_values(lambda token: token.type != "DBLQUOTE"))
    return [(text(one.children[0]), [text(label) for label in trees(one)[1:-1]], trees(one)[-1]) for one in trees(tree)]


def content(tree, at):
    """The attributes and the nested blocks of a resource."""
    found = {}
    for name, labels, value in body(tree):
        if name == "dynamic":
            parts = {part: inner for part, _, inner in body(value)}
            found[labels[0]] = [content(parts["content"], at | {labels[0]: {"value": one}}) for one in evaluate(parts["for_each"], at)]
        elif value.data == "body":
            found.setdefault(name, []).append(content(value, at))
        elif name not in ("for_each", "count", "depends_on"):
            found[name] = evaluate(value, at)
    return found


def module(folder, variables):
    """The resources of a module by their addresses."""
    top = body(hcl2.parses_to_tree((folder / "main.tf").read_text()).children[0])
    blocks = {tuple(labels): block for kind, labels, block in top if kind == "resource"}
    values = {name: value for kind, _, block in top if kind == "locals" for name, _, value in body(block)}
    declared = {labels[0]: body(block) for kind, labels, block in top if kind == "variable"}
    defaults = {variable: evaluate(value, {}) for variable, block in declared.items() for name, _, value in block if name == "default"}

    def places(block):
        repeat = {name: evaluate(value, at) for name, _, value in body(block) if name in ("for_each", "count")}
        if "for_each" in repeat:
            return {key: at | {"each": {"key": key, "value": value}} for key, value in repeat["for_each"].items()}
        return {None: at} if repeat.get("count", 1) else {}

    def references(kind, label):
        if any(name == "for_each" for name, _, _ in body(blocks[kind, label])):
            return Lazy(lambda key: Lazy(lambda name: f"{kind}.{key}.{name}"), lambda: places(blocks[kind, label]))
        return Lazy(lambda name: f"{kind}.{label}.{name}")

    at = {"local": Lazy(lambda name: evaluate(values[name], at)), "var": defaults | variables, "path": {"module": str(folder)},
          "data": Lazy(lambda kind: Lazy(lambda label: Lazy(lambda name: f"{kind}.{label}.{name}")))}
    at |= {kind: (lambda kind: Lazy(lambda label: references(kind, label)))(kind) for kind, _ in blocks}
    for validation in (inner for block in declared.values() for name, _, inner in block if name == "validation"):
        found = content(validation, at)
        if not found["condition"]:
            raise SystemExit(f"main.tf: {found['error_message']}")
    return {f"{kind}.{key or label}": content(block, place) for (kind, label), block in blocks.items() for key, place in places(block).items()}
