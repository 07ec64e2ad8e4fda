"""The metrics of a PromQL expression, and expressions that Prometheus would refuse."""

from __future__ import annotations

import pytest

from codegen.rules.metrics.promql import NotPromQL, parse_selectors


@pytest.mark.parametrize(
    ("expression", "metrics"),
    [
        ("up == 0", ["up"]),
        ("max by (size) (bikes) > 1e3", ["bikes"]),
        ("sum(rate(a_total[5m])) without (job) / ignoring(x) group_left (y) b_total", ["a_total", "b_total"]),
        ("a and on () b unless c or d", ["a", "b", "c", "d"]),
        ("a offset 5m > bool 3", ["a"]),
        ("a - a offset 1h30m", ["a", "a"]),
        ("histogram_quantile(0.5, sum by (le) (rate(x_bucket[5m])))", ["x_bucket"]),
        ('label_replace(a, "b", "$1", "c", "(.*)")  # and d', ["a"]),
        ("max_over_time(a[1h:5m] @ end()) > Inf", ["a"]),
        ("a{b='c(d', e!=`f`}", ["a"]),
        ('{__name__="a", b="c"} or {"d"}', ["a", "d"]),
        ('{__name__=~"a.*", b="c"}', [""]),
        ("topk(scalar(a), b) > -(c)", ["a", "b", "c"]),
    ],
)
def test_metrics_are_distinguished_from_all_else(expression: str, metrics: list[str]) -> None:
    """Functions, words, labels, texts, durations and comments are no metrics."""
    assert [each.metric for each in parse_selectors(expression)] == metrics


def test_labels_have_their_texts() -> None:
    """Each comparison of a selector has its operator."""
    (found,) = parse_selectors('a{b="c", d=~"e|f", g!=\'h\'}')
    assert found.labels == (("b", "=", "c"), ("d", "=~", "e|f"), ("g", "!=", "h"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no expression"),
        ("   ", "no expression"),
        ("(a", "parenthesis"),
        ("a)", "parenthesis"),
        ("a{b='c'", "braces"),
        ("a > ?", "unexpected character"),
        ('"a', "string"),
        ("a][", "bracket"),
        ("a >", "missing or out of place"),
        ("a b", "missing or out of place"),
        ("rate(a)", "expected type matrix"),
        ("sum(1)", "expected type vector"),
        ("a{b=c}", "expected string"),
        ("a{b=~'('}", "regex"),
        ("{}", "non-empty matcher"),
        ("a{b='c' or d='e'}", "no part of Prometheus"),
        ("highest(a)", "unknown function"),
        ("a and on (b) group_left c", "no grouping"),
        ("a[5m]", "range vector"),
        ("(a[5m:1m])", "range vector"),
        ("'a'", "a string"),
    ],
)
def test_invalid_expressions_are_refused(text: str, reason: str) -> None:
    """With a reason: violations of the grammar, the types or a rule."""
    with pytest.raises(NotPromQL, match=reason):
        parse_selectors(text)
