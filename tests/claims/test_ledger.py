"""The ledger answers for every statement of the documents, and no row contradicts itself."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from jaxsolve import theories
from jaxsolve.claims import AtMost, Claim, Column, Mean, Measure, Status, documents, ledger, parse_numbers
from jaxsolve.evidence import Kind, Result

CHECKLIST = json.loads((Path(__file__).parents[1] / "checklist_ids.json").read_text())
NUMBERS = {entry["id"]: entry["printed"] for entry in CHECKLIST if "printed" in entry}
DOCUMENTS = {document.slug for document in documents()}
ROWS = [row for row in ledger() if row.document in DOCUMENTS]
MEASURED = [row for row in ROWS if row.status is Status.MEASURED]


def printed_digits(text: str) -> list[str]:
    plain = re.sub(r"\\times\s*10\^\{?(-?\d+)\}?", r"e\1", text)
    return re.findall(r"\d+", plain)


def test_there_are_five_documents_in_order():
    assert [(document.number, document.slug) for document in documents()] == [
        ("000", "solver-training"),
        ("001", "error-sources"),
        ("002", "feedback-reference"),
        ("003", "dynamics-abstracts"),
        ("004", "attention-indexed"),
    ]


def test_the_checklist_is_whole():
    assert len(CHECKLIST) == 942
    assert len(NUMBERS) == 331


def test_every_statement_is_covered():
    covered = {entry for row in ROWS for entry in row.covers}
    assert covered == {entry["id"] for entry in CHECKLIST}


def test_every_printed_number_has_its_own_row():
    covering = Counter(entry for row in ROWS for entry in row.covers if entry in NUMBERS)
    assert set(covering.values()) == {1}
    rows = {row.covers[0]: row for row in ROWS if row.covers and row.covers[0] in NUMBERS}
    for entry, printed in NUMBERS.items():
        assert rows[entry].covers == (entry,)
        assert printed_digits(rows[entry].quoted) == printed_digits(printed), entry


def test_every_printed_number_can_be_read():
    for row in ROWS:
        if row.covers and row.covers[0] in NUMBERS:
            assert parse_numbers(row.quoted), row.id


def test_rows_stand_in_document_order():
    for document in documents():
        first = [row.covers[0] for row in ROWS if row.document == document.slug]
        assert first == sorted(first), document.slug


def test_statements_are_short_and_our_own():
    for row in ROWS:
        assert 10 < len(row.statement) < 260, row.id
        assert row.statement != row.quoted


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row.id)
def test_measured_rows_fit_their_theory(row):
    theory = theories.load(row.measured_by)
    assert row.measure.observable in theory.observables
    assert row.kind is theory.kind


def test_rows_of_one_configuration_share_its_options():
    options: dict[str, dict] = {}
    for row in MEASURED:
        assert options.setdefault(row.group, dict(row.measure.options)) == dict(row.measure.options), row.id


def test_no_theory_is_without_rows():
    measured = {row.measured_by for row in ledger() if row.measure is not None}
    assert measured >= set(theories.names())


def minimal(**changes):
    fields = {"id": "a/b/c", "where": "here", "kind": Kind.LAW, "statement": "it is so"}
    return Claim(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"id": "A/b"}, "an id reads"),
        ({"status": Status.MEASURED}, "measure"),
        ({"status": Status.RETIRED}, "needs a reason"),
        ({"status": Status.OUT_OF_SCOPE}, "needs a reason"),
        ({"status": Status.UNSUPPORTED}, "needs a reason"),
        ({"expected_quoted": Result.DISAGREES}, "names the finding"),
        ({"expected_predicted": Result.DISAGREES, "expected_quoted": Result.DISAGREES}, "names the finding"),
        ({"expected_predicted": Result.INCONCLUSIVE}, "names the finding"),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(changes, told):
    with pytest.raises(ValueError, match=told):
        minimal(**changes)


def test_quoted_side_is_one_of_two(reading):
    with pytest.raises(ValueError, match="quoted_side"):
        Measure(observable="x", reading=reading, quoted_side="both")


def test_only_a_rule_can_wait_for_the_full_scale(reading):
    with pytest.raises(ValueError, match="has none"):
        Measure(observable="x", reading=reading, full_scale_only=True)


def test_a_column_hands_its_scale_on():
    rows = documents()[0].table(
        "t",
        "{column}-{row}",
        1,
        Kind.LAW,
        "§1",
        {name: Column(name, Mean, AtMost(), full_scale_only=name == "b") for name in "ab"},
        {"1": "2 | 3"},
        observable="x",
    )
    assert [row.measure.full_scale_only for row in rows] == [False, True]


def test_plain_text_rows():
    document = documents()[2]
    first, second = document.rows(
        """
        # §1
        3, 7-8  law  some_theory/first | 0.5
            One statement
            over two lines.
        9  bound  some_theory/second
            Another.
            | x <= y
            ! quoted disagrees: it was measured to be larger
        """
    )
    assert first.covers == ("002-0003", "002-0007", "002-0008")
    assert (first.where, first.kind, first.quoted) == ("§1", Kind.LAW, "0.5")
    assert first.statement == "One statement over two lines."
    assert (second.quoted, second.expected_quoted) == ("x <= y", Result.DISAGREES)
    assert second.reason == "it was measured to be larger"


@pytest.mark.parametrize(
    "text", ["3 law a/b\n    no place", "# here\nlaw a/b\n    no number", "# here\n3 law a/b\n    s\n    ! what"]
)
def test_plain_text_that_cannot_be_read_is_shown(text):
    with pytest.raises(ValueError, match="annot read"):
        documents()[0].rows(text)


def test_tables_need_one_number_per_column():
    with pytest.raises(ValueError, match="2 numbers for 1 columns"):
        documents()[0].table("t", "{column}-{row}", 1, Kind.LAW, "§1", {"a": "x"}, {"1": "2 | 3"})
