"""Rows that no source document asks for: theories of the library's own, and of other installed packages."""

from ..evidence import AbstractTheory, Result
from ._claim import Claim, Document, Fidelity, Measure, Status
from ._reading import Discrepancy

LIBRARY = Document(slug="library", number="", title="Results of the library's own", bibtex="")
INSTALLED = Document(slug="installed", number="", title="Theories of other installed packages", bibtex="")


def unwritten_claims(document: Document, name: str, theory: type[AbstractTheory]) -> list[Claim]:
    """One row for each observable of a theory: measured against predicted, nothing printed."""
    return [
        Claim(
            id=f"{document.slug}/{name}/{observable.replace('_', '-')}",
            where="",
            kind=theory.kind,
            statement=theory.statement,
            status=Status.MEASURED,
            measure=Measure(observable=observable, reading=Discrepancy()),
            fidelity=Fidelity.SAME_SETTING,
            expected_predicted=theory.quick_verdict,
            expected_quoted=theory.quick_verdict,
            reason="" if theory.quick_verdict is Result.AGREES else "Declared by the theory.",
        )
        for observable in theory.observables
    ]
