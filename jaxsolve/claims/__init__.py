"""The ledger: every quantitative claim of the source documents, one file per document."""

import functools
import importlib
import pkgutil

from ..evidence import AbstractTheory
from ..theories import plug_ins
from ._claim import Claim, Column, Document, Fidelity, Measure, Status
from ._installed import INSTALLED, installed_claims
from ._reading import (
    AbstractReading,
    CurveValue,
    Discrepancy,
    KolmogorovSmirnov,
    LargestDiscrepancy,
    Mean,
    PValue,
    Quantile,
    Read,
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
    parse_number,
    parse_numbers,
)


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
    """Every row, in document order; rows of installed theories come last.

    Raises
    ------
    ValueError
        Where two rows share an id.
    """
    rows = [claim for module in _modules() for claim in module.CLAIMS]
    for name, theory in plug_ins().items():
        if isinstance(theory, type) and issubclass(theory, AbstractTheory):
            rows += installed_claims(name, theory)
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise ValueError(f"Two rows of the ledger are called {row.id!r}; rename one.")
        seen.add(row.id)
    return tuple(rows)


__all__ = [
    "INSTALLED",
    "KS",
    "Above",
    "AbstractQuotedRule",
    "AbstractReading",
    "AtMost",
    "Claim",
    "Column",
    "CurveValue",
    "Discrepancy",
    "Document",
    "Fidelity",
    "InBand",
    "KolmogorovSmirnov",
    "LargestDiscrepancy",
    "Mean",
    "Measure",
    "NoViolations",
    "Ordering",
    "PValue",
    "Quantile",
    "Read",
    "Slope",
    "Status",
    "Within",
    "documents",
    "installed_claims",
    "ledger",
    "parse_number",
    "parse_numbers",
]
