"""Parse PromQL: which metrics an expression reads, and which labels it compares with what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import promql_parser as promql

_OPERATORS = {"Equal": "=", "NotEqual": "!=", "Re": "=~", "NotRe": "!~"}
_WITHOUT_REASON = "invalid promql query"
"""The message of the parser where its grammar does not match; all others give a reason."""
_OUT_OF_PLACE = "an operand, an operator or a bracket is missing or out of place"


class Selector(NamedTuple):
    """A metric that is read, and the texts that its labels are compared with."""

    metric: str
    """Empty where the expression selects by labels alone, or by a pattern of names."""
    labels: tuple[tuple[str, str, str], ...]
    """Name, operator and text."""


class NotPromQL(ValueError):
    """The text is no expression that Prometheus evaluates for a rule; says why."""


def parse_selectors(expression: str) -> list[Selector]:
    """List the selectors of an expression from left to right. Raises NotPromQL."""
    try:
        parsed = promql.parse(expression)
    except ValueError as error:
        reason = str(error)
        raise NotPromQL(_OUT_OF_PLACE if reason == _WITHOUT_REASON else reason) from error
    _check_result(parsed)
    return [_parse_selector(each) for each in _iter_vector_selectors(parsed)]


def _check_result(parsed: promql.Expr) -> None:
    """Raise unless the value is an instant vector or a scalar, which is all that a rule may have."""
    while isinstance(parsed, promql.ParenExpr):
        parsed = parsed.expr
    if isinstance(parsed, promql.MatrixSelector | promql.SubqueryExpr):
        raise NotPromQL("its value is a range vector, where a rule needs an instant vector")
    if isinstance(parsed, promql.StringLiteral):
        raise NotPromQL("its value is a string, where a rule needs an instant vector")


def _iter_vector_selectors(parsed: promql.Expr) -> Iterator[promql.VectorSelector]:
    # The library's own walk() copies the rest of the tree for every node that it visits.
    pending = [parsed]
    while pending:
        node = pending.pop()
        if isinstance(node, promql.VectorSelector):
            yield node
        else:
            pending.extend(reversed(_list_children(node)))


def _list_children(node: promql.Expr) -> list[Any]:
    match node:
        case promql.BinaryExpr():
            return [node.lhs, node.rhs]
        case promql.AggregateExpr():
            return [node.expr] if node.param is None else [node.param, node.expr]
        case promql.Call():
            return node.args
        case promql.MatrixSelector():
            return [node.vector_selector]
        case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            return [node.expr]
    return []


def _parse_selector(node: promql.VectorSelector) -> Selector:
    if node.matchers.or_matchers:
        raise NotPromQL("'or' between the matchers of a selector is no part of Prometheus' language")
    metric = node.name or ""
    labels = []
    for each in node.matchers.matchers:
        operator = _OPERATORS[str(each.op).rpartition(".")[2]]
        if each.name == "__name__" and operator == "=":
            metric = each.value
        elif each.name != "__name__":
            labels.append((each.name, operator, each.value))
    return Selector(metric, tuple(labels))
