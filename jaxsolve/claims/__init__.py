"""The ledger: every quantitative claim of the source documents, one file per document."""

import functools
import importlib
import pkgutil

from .. import theories
from ..evidence import AbstractTheory
from ._claim import Claim, Column, Document, Fidelity, Measure, Status
from ._reading import (
    AbstractReading,
    CurveDeviation,
    CurveError,
    CurveMedian,
    CurveRatio,
    CurveValue,
    Deviation,
    Discrepancy,
    KolmogorovSmirnov,
    LargestDeviation,
    LargestDiscrepancy,
    LogError,
    Mean,
    MomentError,
    PValue,
    Quantile,
    Read,
    SmallestRatio,
)
from ._rules import (
    KS,
    Above,
    AbstractQuotedRule,
    AtMost,
    InBand,
    NoViolations,
    Ordering,
    Slope,
    Within,
    WithinFactor,
    parse_number,
    parse_numbers,
)
from ._unwritten import INSTALLED, LIBRARY, unwritten_claims


@functools.cache
def _modules():
    found = [
        importlib.import_module(f"{__name__}.{info.name}")
        for info in pkgutil.iter_modules(__path__)
        if not info.name.startswith("_")
    ]
    return tuple(sorted(found, key=lambda module: module.DOCUMENT.number))


def documents() -> tuple[Document, ...]:
    """The source documents, in the order of their numbers."""
    return tuple(module.DOCUMENT for module in _modules())


def ledger() -> tuple[Claim, ...]:
    """Every row, in document order.

    Then come the theories of the library that no document asks for, and those of other installed packages: one row
    for each of their observables.

    Raises
    ------
    ValueError
        Where two rows share an id.
    """
    rows = [claim for module in _modules() for claim in module.CLAIMS]
    measured = {row.measured_by for row in rows if row.measure is not None}
    for name in theories.names():
        if name not in measured:
            rows += unwritten_claims(LIBRARY, name, theories.load(name))
    for name, theory in theories.plug_ins().items():
        if isinstance(theory, type) and issubclass(theory, AbstractTheory):
            rows += unwritten_claims(INSTALLED, name, theory)
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise ValueError(f"Two rows of the ledger are called {row.id!r}; rename one.")
        seen.add(row.id)
    return tuple(rows)


__all__ = [
    "INSTALLED",
    "KS",
    "LIBRARY",
    "Above",
    "AbstractQuotedRule",
    "AbstractReading",
    "AtMost",
    "Claim",
    "Column",
    "CurveDeviation",
    "CurveError",
    "CurveMedian",
    "CurveRatio",
    "CurveValue",
    "Deviation",
    "Discrepancy",
    "Document",
    "Fidelity",
    "InBand",
    "KolmogorovSmirnov",
    "LargestDeviation",
    "LargestDiscrepancy",
    "LogError",
    "Mean",
    "Measure",
    "MomentError",
    "NoViolations",
    "Ordering",
    "PValue",
    "Quantile",
    "Read",
    "Slope",
    "SmallestRatio",
    "Status",
    "Within",
    "WithinFactor",
    "documents",
    "ledger",
    "parse_number",
    "parse_numbers",
    "unwritten_claims",
]
