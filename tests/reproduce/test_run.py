"""Rows share runs, expectations decide the outcome, and one broken theory leaves the rest alone."""

import json

import pytest

from jaxsolve import theories
from jaxsolve.claims import AtMost, Claim, CurveValue, Measure, Status, Within
from jaxsolve.evidence import Kind, Result
from jaxsolve.reproduce import RECORDS, groups, outcome, reproduce, summary

from ..evidence import toy


class Raises(toy.Right):
    """Breaks when it is run."""

    def sample(self, grid, *, key):
        raise ArithmeticError("no such thing")


RUNS = []


class Counted(toy.Right):
    """Remembers its runs."""

    def grid(self):
        RUNS.append(type(self).__name__)
        return super().grid()


@pytest.fixture(autouse=True)
def toy_theories(monkeypatch):
    monkeypatch.setattr(theories, "load", {"right": Counted, "raises": Raises}.__getitem__)
    RUNS.clear()


def row(name, theory="right", at=1.0, **fields):
    measure = Measure(
        observable="mean",
        reading=CurveValue(at),
        rule=fields.pop("rule", None),
        full_scale_only=fields.pop("full_scale_only", False),
    )
    return Claim(
        id=f"doc/{theory}/{name}",
        where="§1",
        kind=Kind.POPULATION,
        statement="the mean of c x² is c",
        status=Status.MEASURED,
        measure=measure,
        **fields,
    )


OPEN = Claim(id="doc/other/open", where="§2", kind=Kind.LAW, statement="nobody has looked", quoted="1.5")
ONE = row("one", rule=Within(absolute=0.3), quoted="1.0")
TWO = row("two", at=2.0)


def test_rows_of_one_configuration_share_one_run(tmp_path):
    done = reproduce([ONE, OPEN, TWO], tmp_path)
    assert RUNS == ["Counted"]
    assert [group.name for group in groups([ONE, OPEN, TWO])] == ["doc/right/default"]
    one, other, two = done.records
    assert (one["verdict_predicted"], one["verdict_quoted"]) == ("agrees", "agrees")
    assert (two["verdict_predicted"], two["verdict_quoted"]) == ("agrees", None)
    assert (other["verdict_predicted"], other["verdict_quoted"]) == ("not_run", "not_run")
    assert one["predicted"] == 1.0
    assert two["predicted"] == 2.0
    assert abs(two["measured"] - 2.0) < 0.3
    assert (tmp_path / "data" / "doc" / "right" / "default.npz").exists()


def test_finished_rows_are_not_run_again(tmp_path):
    first = reproduce([ONE, OPEN, TWO], tmp_path)
    again = reproduce([ONE, OPEN, TWO], tmp_path)
    assert RUNS == ["Counted"]
    assert first.records == again.records


def test_a_missing_row_runs_its_group_again_with_the_same_numbers(tmp_path):
    whole = reproduce([ONE, TWO], tmp_path / "whole")
    reproduce([ONE], tmp_path / "part")
    joined = reproduce([ONE, TWO], tmp_path / "part")
    assert [r["measured"] for r in joined.records] == [r["measured"] for r in whole.records]
    assert len((tmp_path / "part" / RECORDS).read_bytes().splitlines()) == 2


def test_the_seed_changes_the_draws_and_nothing_else(tmp_path):
    zero, one = (reproduce([ONE], tmp_path / str(seed), seed=seed).records[0] for seed in (0, 1))
    assert zero["measured"] != one["measured"]
    assert zero["predicted"] == one["predicted"]


def test_another_group_never_changes_a_draw(tmp_path):
    alone = reproduce([ONE], tmp_path / "a").records[0]
    beside = reproduce([row("x", theory="right", rule=None), ONE, OPEN], tmp_path / "b").records[1]
    assert alone["measured"] == beside["measured"]


@pytest.mark.parametrize(
    ("claim", "counts_as"),
    [
        (ONE, "agree"),
        (TWO, "agree"),
        (OPEN, "not_attempted"),
        (row("off", rule=AtMost(), quoted="0.5"), "unexpected"),
        (row("known", rule=AtMost(), quoted="0.5", expected_quoted=Result.DISAGREES, reason="It is 1."), "finding"),
        (row("gone", rule=AtMost(), quoted="2", expected_quoted=Result.DISAGREES, reason="Was 3."), "unexpected"),
    ],
    ids=lambda value: getattr(value, "id", value),
)
def test_outcomes(tmp_path, claim, counts_as):
    (record,) = reproduce([claim], tmp_path).records
    assert outcome(record) == counts_as
    assert {"agree": "1 agree", "finding": "1 disagree", "unexpected": "1 unexpected"}.get(
        counts_as, "1 not_attempted"
    ) in summary([record])


@pytest.mark.parametrize(
    ("at", "fields"),
    [
        (1.0, {"rule": AtMost(), "quoted": "0.5", "full_scale_only": True}),
        (1.0, {"rule": Within(absolute=0.3), "quoted": "1", "full_scale_only": True}),
    ],
    ids=["wrong", "right"],
)
def test_a_number_that_needs_the_full_scale_is_compared_there_only(tmp_path, at, fields):
    quick, full = (reproduce([row("x", at=at, **fields)], tmp_path / s, scale=s).records[0] for s in ("quick", "full"))
    assert quick["verdict_quoted"] == quick["expected"]["quoted"] == "not_run"
    assert quick["verdict_predicted"] == "agrees"
    assert "needs the full scale" in quick["message"]
    assert outcome(quick) == "agree"
    assert "1 printed numbers compared at full scale only" in summary([quick])
    assert full["expected"]["quoted"] == "agrees"
    assert outcome(full) == ("agree" if full["verdict_quoted"] == "agrees" else "unexpected")
    assert full["verdict_quoted"] == ("disagrees" if fields["quoted"] == "0.5" else "agrees")
    assert "full scale" not in summary([full])


def test_a_wrong_prediction_is_not_hidden_by_the_scale(tmp_path):
    claim = row(
        "x",
        rule=AtMost(),
        quoted="0.5",
        full_scale_only=True,
        expected_predicted=Result.DISAGREES,
        reason="Expected to be wrong, and is right.",
    )
    (record,) = reproduce([claim], tmp_path).records
    assert outcome(record) == "unexpected"


def test_a_broken_theory_leaves_the_rest_alone(tmp_path):
    done = reproduce([row("bad", theory="raises"), ONE], tmp_path)
    assert [outcome(record) for record in done.records] == ["broken", "agree"]
    (path,) = done.broken.values()
    assert "no such thing" in path.read_text()
    assert "no such thing" in done.records[0]["message"]
    reproduce([row("bad", theory="raises"), ONE], tmp_path)
    assert RUNS == ["Counted"]


def test_records_are_plain_json(tmp_path):
    reproduce([ONE, OPEN], tmp_path)
    for line in (tmp_path / RECORDS).read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} in {RECORDS}"))


def test_an_unknown_scale_is_refused(tmp_path):
    with pytest.raises(ValueError, match="quick, full"):
        reproduce([ONE], tmp_path, scale="huge")
