"""Patterns choose rows; a pattern that chooses none offers close ones."""

import pytest

from jaxsolve.claims import Claim
from jaxsolve.evidence import Kind
from jaxsolve.reproduce import NoMatchError, select


def row(name):
    return Claim(id=name, where="§1", kind=Kind.LAW, statement="it is so")


ROWS = [row(name) for name in ("one/law/mean", "one/law/tail", "one/bound/tail", "two/law/mean")]


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ([], [0, 1, 2, 3]),
        (["one/law/mean"], [0]),
        (["one"], [0, 1, 2]),
        (["one/law"], [0, 1]),
        (["one/law/"], [0, 1]),
        (["*/tail"], [1, 2]),
        (["*/law/*"], [0, 1, 3]),
        (["two", "one/bound"], [2, 3]),
        (["one/law/m?an"], [0]),
    ],
)
def test_patterns(patterns, chosen):
    assert select(ROWS, patterns) == [ROWS[i] for i in chosen]


@pytest.mark.parametrize(
    ("pattern", "offered"),
    [("one/law/maen", "one/law/mean"), ("lwa", "one/law"), ("on", "one"), ("two/lam", "two/law")],
)
def test_close_matches_are_offered(pattern, offered):
    with pytest.raises(NoMatchError, match=offered) as caught:
        select(ROWS, [pattern])
    assert pattern in str(caught.value)


def test_a_pattern_is_not_a_prefix_of_a_name():
    with pytest.raises(NoMatchError):
        select(ROWS, ["one/la"])
