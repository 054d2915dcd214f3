"""Rows of theories that other installed packages bring along."""

from ..evidence import AbstractTheory
from ._claim import Claim, Document, Fidelity, Measure, Status
from ._reading import Discrepancy

INSTALLED = Document(slug="installed", number="", title="Theories of other installed packages", bibtex="")


def installed_claims(name: str, theory: type[AbstractTheory]) -> list[Claim]:
    """One row for each observable of an installed theory: measured against predicted, nothing printed."""
    return [
        Claim(
            id=f"{INSTALLED.slug}/{name}/{observable.replace('_', '-')}",
            where="plug-in",
            kind=theory.kind,
            statement=theory.statement,
            status=Status.MEASURED,
            measure=Measure(observable=observable, reading=Discrepancy()),
            fidelity=Fidelity.SAME_SETTING,
            expected_predicted=theory.quick_verdict,
            expected_quoted=theory.quick_verdict,
            reason="" if theory.quick_verdict.value == "agrees" else "Declared by the theory.",
        )
        for observable in theory.observables
    ]
