"""Mutants of a source file: everywhere in its functions one thing is changed, once.

What is changed: a sign, an operator, a bound, an index, a default, an argument, a call or a
statement less, another attribute of the same object. Errors, annotations and decorators stay.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import itertools
import types
from collections.abc import Iterator
from typing import Any

OPERATORS: dict[type[Any], tuple[type[Any], ...]] = {
    **{ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Div: (ast.Mult,), ast.FloorDiv: (ast.Mult,)},
    **{ast.Mult: (ast.Div, ast.Add), ast.MatMult: (ast.Mult,), ast.Pow: (ast.Mult,)},
    **{ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.And: (ast.Or,), ast.Or: (ast.And,)},
    **{ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Eq: (ast.NotEq,)},
    **{ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt), ast.NotEq: (ast.Eq,)},
    **{ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,)},
}
FAMILIES = ("max min", "maximum minimum", "mean sum", "zeros ones", "zeros_like ones_like")
RELATIVES = {a: b for pair in FAMILIES for a, b in (pair.split(), pair.split()[::-1])}
MODULES = ("np", "torch", "dataclasses")
SKIPPED = (ast.Raise, ast.Import, ast.JoinedStr)
SKIPPED_FIELDS = ("annotation", "returns", "decorator_list")


def altered(node: Any, **fields: Any) -> Any:
    """A copy of a node with other fields."""
    other = copy.copy(node)
    vars(other).update(fields)
    return other


def negated(value: ast.expr) -> Iterator[tuple[Any, Any]]:
    """The change of a value's sign, if it may be a number."""
    if isinstance(value, ast.BinOp | ast.Call | ast.Name | ast.Attribute | ast.Subscript):
        yield value, ast.UnaryOp(ast.USub(), value)


def changes(node: Any, function: ast.FunctionDef) -> Iterator[tuple[Any, Any]]:
    """Changes of a node: it or a part of it, and what takes its place."""
    kinds = OPERATORS.get(type(getattr(node, "op", None)), ())
    match node:
        case ast.BinOp(left, op, right):
            yield from negated(node)
            yield from ((node, altered(node, op=kind())) for kind in kinds)
            yield from ((node, side) for side in (left, right))
            if not isinstance(op, ast.Add | ast.Mult | ast.BitAnd | ast.BitOr):
                yield node, altered(node, left=right, right=left)
            if isinstance(right, ast.BinOp) and type(right.op) is not type(op):
                # a / (b + c) becomes a / b + c
                yield node, altered(right, left=altered(node, right=right.left))
            if isinstance(left, ast.BinOp) and type(left.op) is not type(op):
                # (a + b) * c becomes a + b * c
                yield node, altered(left, right=altered(node, left=left.right))
        case ast.AugAssign(target, op, value):
            yield from ((node, altered(node, op=kind())) for kind in kinds)
            yield node, ast.Assign([target], value, lineno=0)
        case ast.BoolOp(op, values):
            yield node, altered(node, op=kinds[0]())
            yield from ((node, value) for value in values)
        case ast.UnaryOp(_, operand):
            yield node, operand
        case ast.Compare(_, [op, *more]):
            yield from ((node, altered(node, ops=[o(), *more])) for o in OPERATORS[type(op)])
        case ast.Constant(bool(value)):
            yield node, ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield from ((node, ast.Constant(other)) for other in (value + 1, 0 - value, 0 * value))
        case ast.Constant(str(value)):
            yield node, ast.Constant(f"not {value}")
        case ast.Subscript(value, _, ast.Load()):
            yield node, value
        case ast.Slice():
            for name in ("lower", "upper", "step"):
                if bound := getattr(node, name):
                    moved = ast.BinOp(bound, ast.Add(), ast.Constant(1))
                    yield from ((node, altered(node, **{name: b})) for b in (None, moved))
        case ast.IfExp(_, body, orelse):
            yield from ((node, side) for side in (body, orelse))
        case ast.Attribute(owner, name, ast.Load()) if ast.unparse(owner) not in MODULES:
            reads = (n for n in ast.walk(function) if isinstance(n, ast.Attribute))
            names = {n.attr for n in reads if ast.unparse(n.value) == ast.unparse(owner)}
            yield node, altered(node, attr=sorted(names)[sorted(names).index(name) - 1])
        case ast.Call():
            yield from changes_of_call(node)
        case ast.If(test):
            yield from ((test, ast.Constant(value)) for value in (True, False))
        case ast.comprehension(ifs=tests):
            yield from ((test, ast.Constant(True)) for test in tests)
        case ast.Return(ast.expr() as value):
            yield from (*negated(value), (value, ast.Constant(None)))
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            yield from (*negated(value), (node, ast.Pass()))
        case ast.Expr() | ast.Continue():
            yield node, ast.Pass()


def changes_of_call(call: ast.Call) -> Iterator[tuple[Any, Any]]:
    """The changes of a call: another function or none, and arguments less, exchanged, negated."""
    function, args, keywords = call.func, call.args, call.keywords
    field = "attr" if isinstance(function, ast.Attribute) else "id"
    if relative := RELATIVES.get(getattr(function, field, "")):
        yield call, altered(call, func=altered(function, **{field: relative}))
    if isinstance(function, ast.Attribute) and ast.unparse(function.value) not in MODULES:
        yield call, function.value
    elif args:
        yield call, args[0]
    for i, argument in enumerate(args):
        yield from negated(argument)
        yield call, altered(call, args=args[:i] + args[i + 1 :])
        yield call, altered(call, args=[*args[:i], *args[i : i + 2][::-1], *args[i + 2 :]])
    for i, keyword in enumerate(keywords):
        yield from negated(keyword.value)
        if keyword.arg not in (None, "strict"):
            yield call, altered(call, keywords=keywords[:i] + keywords[i + 1 :])
    for one, two in itertools.pairwise(keywords):
        yield from ((one.value, two.value), (two.value, one.value))


def walk(node: Any, function: Any = None) -> Iterator[tuple[Any, Any, Any]]:
    """All changes below a node, after the outermost function they are in."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, SKIPPED) or is_text or getattr(node, "arg", None) == "strict":
        return
    function = function or (node if isinstance(node, ast.FunctionDef) else None)
    if function:
        yield from ((function, old, new) for old, new in changes(node, function))
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in SKIPPED_FIELDS:
                yield from walk(child, function)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A file with one change."""

    line: int
    before: str
    after: str
    source: str
    start: int  # the first line of the function with the change


def mutants(source: str) -> Iterator[Mutant]:
    """Every change of a file, once."""
    text, tree = source.encode(), ast.parse(source)
    starts = [0, *itertools.accumulate(map(len, text.splitlines(keepends=True)))]
    seen = {ast.dump(tree)}
    for function, old, new in walk(tree):
        begin = starts[old.lineno - 1] + old.col_offset
        end = starts[old.end_lineno - 1] + old.end_col_offset
        is_value = isinstance(old, ast.expr) and not isinstance(old, ast.Slice)
        after = f"({ast.unparse(new)})" if is_value else ast.unparse(new)
        mutated = (text[:begin] + after.encode() + text[end:]).decode()
        with contextlib.suppress(SyntaxError):
            dump = ast.dump(ast.parse(mutated))
            if dump not in seen:
                seen.add(dump)
                before = text[begin:end].decode()
                yield Mutant(old.lineno, before, after, mutated, first_line(function))


def first_line(function: ast.FunctionDef) -> int:
    """The first line of a function or of its decorators."""
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def mutate(function: types.FunctionType, mutant: Mutant) -> None:
    """Give an imported function the code and the defaults it has in the mutant."""
    nodes = (n for n in ast.walk(ast.parse(mutant.source)) if isinstance(n, ast.FunctionDef))
    (node,) = (n for n in nodes if first_line(n) == mutant.start)
    node.decorator_list = []
    whole: Any = ast.parse("class Holder:\n    __class__")
    if function.__closure__:
        # A function that calls `super` knows its class, also where that call has gone.
        node.body += whole.body[0].body
    whole.body[0].body = [node]
    names = dict(function.__globals__)
    exec(compile(whole, function.__code__.co_filename, "exec"), names)
    for part in ("__code__", "__defaults__", "__kwdefaults__"):
        setattr(function, part, getattr(vars(names["Holder"])[node.name], part))
