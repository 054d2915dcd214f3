"""One row of the ledger, and the short ways of writing many of them."""

import enum
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..evidence import Kind, Result
from ._reading import AbstractReading
from ._rules import AbstractQuotedRule, parse_number


class Status(enum.StrEnum):
    """Whether a row is measured, and why not where it is not.

    ``NOT_ATTEMPTED``: nobody has built the theory yet. ``OUT_OF_SCOPE``: no measurement could settle it.
    ``RETIRED``: the source itself took the statement back. ``UNSUPPORTED``: the source gives a number that cannot
    be traced to a setting. All but the first two carry a reason; so does ``OUT_OF_SCOPE``.
    """

    MEASURED = "measured"
    NOT_ATTEMPTED = "not_attempted"
    OUT_OF_SCOPE = "out_of_scope"
    RETIRED = "retired"
    UNSUPPORTED = "unsupported"


class Fidelity(enum.StrEnum):
    """How near the measured setting is to the one of the source."""

    SAME_SETTING = "same_setting"
    RECONSTRUCTED_SETTING = "reconstructed_setting"
    QUALITATIVE = "qualitative"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """How a row is measured.

    Attributes
    ----------
    observable
        Name of an observable of the theory.
    reading
        What is read off the observable.
    rule
        How the reading is held against the printed number; ``None`` where the source prints none.
    quoted_side
        ``"measured"`` holds our measurement against the printed number; ``"predicted"`` our prediction, for rows in
        which the source prints its own theoretical value.
    theory
        File name of the theory that measures the row, where it is not the one in the row's id: a statement about
        one theory is sometimes settled by the experiment of another.
    full_scale_only
        The rule has a meaning only at the size or the number of steps of the document, which ``full`` has and
        ``quick`` has not. At the quick scale the printed number is then not compared.
    configuration, options
        Name of the configuration and what it passes to ``quick`` and ``full``. Rows of one document that agree in
        theory and configuration share one run.
    """

    observable: str
    reading: AbstractReading
    rule: AbstractQuotedRule | None = None
    quoted_side: str = "measured"
    theory: str | None = None
    full_scale_only: bool = False
    configuration: str = "default"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        if self.full_scale_only and self.rule is None:
            raise ValueError(
                "full_scale_only says when a rule is applied, and this measure has none; give a rule or leave it out."
            )
        if self.quoted_side not in ("measured", "predicted"):
            raise ValueError(f"quoted_side is 'measured' or 'predicted'; got {self.quoted_side!r}.")


_ID = re.compile(r"[a-z0-9-]+/[a-z0-9_]+/[a-z0-9.+-]+")
_HEAD = re.compile(r"(?P<covers>\d[\d, -]*?)\s+(?P<kind>[a-z_]+)\s+(?P<name>\S+)(?:\s+\|\s+(?P<quoted>.+))?")
_NEEDS_REASON = (Status.OUT_OF_SCOPE, Status.RETIRED, Status.UNSUPPORTED)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One row of the ledger.

    Attributes
    ----------
    id
        ``<document>/<theory>/<what>``; the middle part is the file name of the theory.
    where
        Place in the document.
    kind
        Kind of the statement; for a measured row the kind of its theory.
    statement
        What is claimed, in our own words.
    quoted
        The number or formula as printed; empty where the document gives neither.
    covers
        Identifiers of the statements of the checklist that this row answers for.
    status
        A member of [`Status`][]; ``MEASURED`` exactly where ``measure`` is given.
    measure
        How the row is measured.
    fidelity
        A member of [`Fidelity`][].
    expected_predicted, expected_quoted
        The verdicts this row is expected to get. Anything but agreement needs a ``reason``, entered before the run
        that it judges.
    reason
        The finding behind an expectation, or behind a status that is not measured.

    Raises
    ------
    ValueError
        Where the fields contradict each other; the message names the row.
    """

    id: str
    where: str
    kind: Kind
    statement: str
    quoted: str = ""
    covers: tuple[str, ...] = ()
    status: Status = Status.NOT_ATTEMPTED
    measure: Measure | None = None
    fidelity: Fidelity = Fidelity.RECONSTRUCTED_SETTING
    expected_predicted: Result = Result.AGREES
    expected_quoted: Result = Result.AGREES
    reason: str = ""

    def __post_init__(self):
        def refuse(why: str):
            raise ValueError(f"Claim {self.id!r}: {why}")

        if not _ID.fullmatch(self.id):
            refuse("an id reads <document>/<theory>/<what> in lower case, digits, '-', '+' and '.'.")
        if (self.measure is not None) != (self.status is Status.MEASURED):
            refuse("status is 'measured' exactly where a measure is given.")
        if self.status in _NEEDS_REASON and not self.reason:
            refuse(f"status {self.status.value!r} needs a reason.")
        unexpected = Result.AGREES not in (self.expected_predicted, self.expected_quoted) or (
            self.expected_predicted is not self.expected_quoted
        )
        if unexpected and not self.reason:
            refuse("an expectation other than 'agrees' needs a reason that names the finding.")
        if self.measure is not None and self.measure.rule is not None and not self.quoted:
            refuse("a rule against the printed number needs the printed number in 'quoted'.")

    @property
    def document(self) -> str:
        """Slug of the document."""
        return self.id.split("/")[0]

    @property
    def theory(self) -> str:
        """File name of the theory."""
        return self.id.split("/")[1]

    @property
    def measured_by(self) -> str:
        """File name of the theory that measures the row: the one in its id unless the measure names another."""
        return self.theory if self.measure is None or self.measure.theory is None else self.measure.theory

    @property
    def group(self) -> str:
        """``<document>/<theory>/<configuration>``: the run that this row reads."""
        configuration = "default" if self.measure is None else self.measure.configuration
        return f"{self.document}/{self.measured_by}/{configuration}"


def _remark(remark: str) -> dict[str, Any]:
    """Fields that a line behind ``!`` sets."""
    word, _, reason = (part.strip() for part in remark.partition(":"))
    if word in set(Status):
        return {"status": Status(word), "reason": reason}
    if word in set(Fidelity):
        return {"fidelity": Fidelity(word), "reason": reason}
    side, _, result = word.partition(" ")
    if side in ("predicted", "quoted") and result in set(Result):
        return {f"expected_{side}": Result(result), "reason": reason}
    raise ValueError(f"Cannot read '! {remark}'. Write a status, a fidelity, or 'predicted disagrees: reason'.")


@dataclass(frozen=True)
class Column:
    """A column of a printed table: what it holds and, where it is measured, how.

    ``statement`` may contain ``{row}``. ``at`` inside ``measure`` is filled in from the row by ``measure_row``.
    """

    statement: str
    reading: Any = None
    rule: AbstractQuotedRule | None = None
    quoted_side: str = "measured"
    full_scale_only: bool = False
    kind: Kind | None = None


@dataclass(frozen=True)
class Document:
    """A source document: where its rows get their slug, their identifiers and their citation from.

    Attributes
    ----------
    slug
        First part of every claim id.
    number
        Three digits, the first part of every checklist id.
    title, bibtex
        What it is called and how it is cited.
    """

    slug: str
    number: str
    title: str
    bibtex: str

    def ids(self, numbers: str) -> tuple[str, ...]:
        """Checklist ids from a short list such as ``"3, 7-9"``.

        >>> Document("d", "004", "", "").ids("3, 7-8")
        ('004-0003', '004-0007', '004-0008')
        """
        found: list[str] = []
        for part in filter(None, (piece.strip() for piece in numbers.split(","))):
            first, _, last = part.partition("-")
            found += [f"{self.number}-{i:04d}" for i in range(int(first), int(last or first) + 1)]
        return tuple(found)

    def row(self, name: str, covers: str, kind: Kind, where: str, statement: str, **fields: Any) -> Claim:
        """One claim: ``name`` is ``<theory>/<what>``, ``covers`` a short list for [`Document.ids`][]."""
        if fields.get("measure") is not None:
            fields.setdefault("status", Status.MEASURED)
        return Claim(
            id=f"{self.slug}/{name}",
            where=where,
            kind=kind,
            statement=statement,
            covers=self.ids(covers),
            **fields,
        )

    def rows(self, text: str, measured: Mapping[str, Measure] | None = None) -> tuple[Claim, ...]:
        """Claims written as plain text.

        A line ``# place`` says where the following entries stand. An entry is a head line and indented lines::

            # §8 computational tool
            422-424  identity  layerwise_gram/kernel-identity
                What is claimed, in our own words, over as many lines as it takes.
                | K[(n,c),(m,c')] = sum_l ...
                ! out_of_scope: why no measurement can settle it

        The head gives the covered entries, the kind and the name; ``|``, on the head or below it, what is printed.
        A line behind ``!`` is a status or a fidelity with its reason, or an expected verdict with its reason:
        ``! predicted disagrees: …`` or ``! quoted disagrees: …``.

        Parameters
        ----------
        text
            The entries.
        measured
            How the measured ones among them are measured, by name.

        Raises
        ------
        ValueError
            For a line that cannot be read, and for a measure whose name is not in the text; the message shows it.
        """
        claims: list[Claim] = []
        waiting = dict(measured or {})
        where = ""
        for entry in re.split(r"\n(?=\S)", textwrap.dedent(text).strip("\n")):
            if entry.startswith("#"):
                where = entry.removeprefix("#").strip()
                continue
            head, *body = entry.split("\n")
            found = _HEAD.fullmatch(head.strip())
            if not found or not where:
                raise ValueError(
                    f"{self.slug}: cannot read {head!r}. Write '# place', then: covers  kind  theory/what."
                )
            statement, *marked = re.split(r"(?:^|\s)(?=[|!] )", " ".join(line.strip() for line in body))
            fields: dict[str, Any] = {"quoted": found["quoted"] or "", "measure": waiting.pop(found["name"], None)}
            for remark in marked:
                fields |= {"quoted": remark[2:]} if remark.startswith("|") else _remark(remark[2:])
            claims.append(self.row(found["name"], found["covers"], Kind(found["kind"]), where, statement, **fields))
        if waiting:
            raise ValueError(
                f"{self.slug}: the text has no row called {', '.join(waiting)}; mend the name of the measure."
            )
        return tuple(claims)

    def table(
        self,
        theory: str,
        what: str,
        first: int,
        kind: Kind,
        where: str,
        columns: Mapping[str, str | Column],
        rows: Mapping[str, str],
        *,
        observable: str = "",
        configuration: str = "default",
        options: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> tuple[Claim, ...]:
        """The claims of a printed table, one per number, row by row.

        Parameters
        ----------
        theory, what
            The ids are ``<slug>/<theory>/<what>``; ``what`` contains ``{column}`` and ``{row}``.
        first
            Number of the first cell in the checklist; the cells follow each other row by row.
        kind, where
            Kind of the statements (a column may have its own), and where the table stands.
        columns
            Short name → statement (which may contain ``{row}``), or a [`Column`][] where it is measured.
        rows
            Row name → the printed numbers, parted by ``|``.
        observable, configuration, options
            Of the theory, for measured columns. A measured column reads at the row's number.
        fields
            Passed on to every [`Claim`][].

        Raises
        ------
        ValueError
            Where a row has not one number per column.
        """
        claims: list[Claim] = []
        number = first
        for row, printed in rows.items():
            values = [value.strip() for value in printed.split("|")]
            if len(values) != len(columns):
                raise ValueError(
                    f"Table {self.slug}/{theory}/{what}, row {row!r}: got {len(values)} numbers for "
                    f"{len(columns)} columns ({', '.join(columns)}). Part the numbers with '|'."
                )
            for (short, column), value in zip(columns.items(), values, strict=True):
                cell = Column(column) if isinstance(column, str) else column
                measure = None
                if cell.reading is not None:
                    measure = Measure(
                        observable=observable,
                        reading=cell.reading(parse_number(row)),
                        rule=cell.rule,
                        quoted_side=cell.quoted_side,
                        full_scale_only=cell.full_scale_only,
                        configuration=configuration,
                        options=options or {},
                    )
                claims.append(
                    self.row(
                        f"{theory}/{what.format(column=short, row=row)}",
                        str(number),
                        cell.kind or kind,
                        where,
                        cell.statement.format(row=row),
                        quoted=value,
                        measure=measure,
                        **fields,
                    )
                )
                number += 1
        return tuple(claims)
