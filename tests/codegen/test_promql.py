"""Which metrics an expression of PromQL reads: as much of the language as alerts need."""

from __future__ import annotations

import pytest

from codegen.rules.promql import NotPromQL, selectors


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
        ("a[1h:5m] @ end() > Inf", ["a"]),
        ("a{b='c(d', e!=`f`}", ["a"]),
    ],
)
def test_metrics_are_told_from_all_else(expression: str, metrics: list[str]) -> None:
    """Functions, words, labels, texts, durations and comments are no metrics."""
    assert [each.metric for each in selectors(expression)] == metrics


def test_labels_have_their_texts() -> None:
    """Each comparison of a selector is told with its operator."""
    (found,) = selectors('a{b="c", d=~"e|f", g!=\'h\'}')
    assert found.labels == (("b", "=", "c"), ("d", "=~", "e|f"), ("g", "!=", "h"))


@pytest.mark.parametrize("text", ["", "   ", "(a", "a)", "a{b='c'", "a > ?", '"a', "a]["])
def test_what_is_no_expression_is_refused(text: str) -> None:
    """Brackets that are left open, marks that there are not, and nothing at all."""
    with pytest.raises(NotPromQL):
        list(selectors(text))
