"""The formula of a `multi` grader: `0.7 * exact + 0.3 * min(format, 1)`.

    sum     := product (("+" | "-") product)*
    product := unary (("*" | "/") unary)*
    unary   := ("-" | "+") unary | power
    power   := atom ("^" unary)?                 so -2^2 = -4 and 2^3^2 = 2^9
    atom    := number | name | function "(" sum ("," sum)* ")" | "(" sum ")"

Functions: min and max (one or more arguments), abs, floor, ceil, exp, sqrt, log (natural).
Every step must be finite: 1/0, log(0), sqrt(-1), 0^-1 and overflow raise `FormulaError`.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from graders.errors import FormulaError

#: Longest formula, in characters.
MAX_CHARS = 2_000
#: Deepest nesting of parentheses, signs and powers.
MAX_DEPTH = 40

Values: TypeAlias = Mapping[str, float]
Node: TypeAlias = Callable[[Values], float]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[-+*/^(),])|(?P<other>\S))"
)

_ONE_ARGUMENT: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "log": math.log,
}
_MANY_ARGUMENTS: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max}
_OPERATORS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": math.pow,
}

FUNCTIONS = (*_MANY_ARGUMENTS, *_ONE_ARGUMENT)


@dataclass(frozen=True)
class Formula:
    """A parsed formula: the names it reads and a compiled evaluation."""

    names: frozenset[str]
    _root: Node

    @classmethod
    def parse(cls, text: str) -> "Formula":
        """Read a formula; raises `FormulaError` with the column (from 1) of what is wrong."""
        if len(text) > MAX_CHARS:
            message = f"a formula may hold {MAX_CHARS:,} characters, not {len(text):,}"
            raise FormulaError(message, MAX_CHARS + 1)
        parser = _Parser(text)
        root = parser.sum()
        parser.end()
        return cls(frozenset(parser.names), root)

    def evaluate(self, values: Values) -> float:
        """Compute the value; raises `FormulaError` when a step is undefined or not finite."""
        return self._root(values)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    column: int


def _token(match: re.Match[str]) -> _Token:
    kind = match.lastgroup or "other"
    return _Token(kind, match[kind], match.start(kind) + 1)


class _Parser:
    """Recursive descent over the grammar above; every method returns a compiled node."""

    def __init__(self, text: str) -> None:
        self.names: set[str] = set()
        self._tokens = [_token(match) for match in _TOKEN.finditer(text)]
        self._tokens.append(_Token("end", "", len(text) + 1))
        self._at = 0
        self._depth = 0

    def sum(self) -> Node:
        return self._chain("+-", self._product)

    def end(self) -> None:
        if self._next.kind != "end":
            raise self._unexpected()

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, text: str) -> None:
        if self._next.text != text:
            raise self._unexpected(f", expected {text!r}")
        self._at += 1

    def _unexpected(self, hint: str = "") -> FormulaError:
        ended = self._next.kind == "end"
        found = "the formula ends too early" if ended else f"unexpected {self._next.text!r}"
        return FormulaError(f"{found}{hint}", self._next.column)

    def _chain(self, operators: str, operand: Callable[[], Node]) -> Node:
        first = operand()
        rest: list[tuple[_Token, Node]] = []
        while self._next.kind == "sign" and self._next.text in operators:
            operator = self._take()
            rest.append((operator, operand()))
        return _folded(first, rest) if rest else first

    def _product(self) -> Node:
        return self._chain("*/", self._unary)

    def _unary(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FormulaError(f"nested deeper than {MAX_DEPTH} levels", self._next.column)
        if self._next.text in ("-", "+"):
            sign = self._take()
            operand = self._unary()
            node = _negated(operand) if sign.text == "-" else operand
        else:
            node = self._power()
        self._depth -= 1
        return node

    def _power(self) -> Node:
        base = self._atom()
        if self._next.text != "^":
            return base
        operator = self._take()
        return _folded(base, [(operator, self._unary())])

    def _atom(self) -> Node:
        token = self._next
        if token.kind == "number":
            self._take()
            return _constant(token)
        if token.kind == "name":
            self._take()
            return self._call(token) if self._next.text == "(" else self._variable(token)
        if token.text != "(":
            raise self._unexpected()
        self._take()
        inner = self.sum()
        self._expect(")")
        return inner

    def _variable(self, token: _Token) -> Node:
        self.names.add(token.text)
        name = token.text
        return lambda values: values[name]

    def _call(self, token: _Token) -> Node:
        if token.text not in FUNCTIONS:
            known = ", ".join(FUNCTIONS)
            raise FormulaError(f"unknown function {token.text!r} (known: {known})", token.column)
        self._expect("(")
        arguments = [self.sum()]
        while self._next.text == ",":
            self._take()
            arguments.append(self.sum())
        self._expect(")")
        if token.text in _MANY_ARGUMENTS:
            return _spread(token, arguments)
        if len(arguments) != 1:
            raise FormulaError(f"{token.text} takes one argument", token.column)
        return _applied(token, arguments[0])


def _finite(compute: Callable[[], float], token: _Token) -> float:
    try:
        value = float(compute())
    except ZeroDivisionError as error:
        raise FormulaError("division by zero", token.column) from error
    except OverflowError as error:
        raise FormulaError(f"{token.text!r} overflows", token.column) from error
    except ValueError as error:
        raise FormulaError(f"{token.text!r} is undefined here", token.column) from error
    if not math.isfinite(value):
        raise FormulaError(f"{token.text!r} overflows", token.column)
    return value


def _constant(token: _Token) -> Node:
    value = _finite(partial(float, token.text), token)
    return lambda _values: value


def _negated(operand: Node) -> Node:
    return lambda values: -operand(values)


def _folded(first: Node, rest: list[tuple[_Token, Node]]) -> Node:
    # A loop, not nested nodes: a sum of a thousand terms must not nest a thousand calls.
    steps = [(token, _OPERATORS[token.text], operand) for token, operand in rest]

    def node(values: Values) -> float:
        total = first(values)
        for token, operator, operand in steps:
            total = _finite(partial(operator, total, operand(values)), token)
        return total

    return node


def _applied(token: _Token, argument: Node) -> Node:
    function = _ONE_ARGUMENT[token.text]

    def node(values: Values) -> float:
        return _finite(partial(function, argument(values)), token)

    return node


def _spread(token: _Token, arguments: list[Node]) -> Node:
    function = _MANY_ARGUMENTS[token.text]
    return lambda values: function([argument(values) for argument in arguments])
