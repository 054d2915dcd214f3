"""Kinds of statements, what evidence for them looks like, and how it is judged."""

from ._conformance import QUICK_SECONDS, RUNAWAY_SECONDS, Check, Conformance
from ._evidence import Curve, Evidence, Law, Pair, Samples
from ._kind import Kind, Result
from ._rules import (
    FAMILYWISE_LEVEL,
    AbstractRule,
    BoundRule,
    IdentityRule,
    LawRule,
    LimitRule,
    LocalRule,
    NullModelRule,
    PopulationRule,
    TransitionRule,
    kolmogorov_smirnov,
)
from ._store import load_evidence, save_evidence
from ._theory import AbstractTheory, Evaluation, evaluate, judge
from ._verdict import Verdict

__all__ = [
    "FAMILYWISE_LEVEL",
    "QUICK_SECONDS",
    "RUNAWAY_SECONDS",
    "AbstractRule",
    "AbstractTheory",
    "BoundRule",
    "Check",
    "Conformance",
    "Curve",
    "Evaluation",
    "Evidence",
    "IdentityRule",
    "Kind",
    "Law",
    "LawRule",
    "LimitRule",
    "LocalRule",
    "NullModelRule",
    "Pair",
    "PopulationRule",
    "Result",
    "Samples",
    "TransitionRule",
    "Verdict",
    "evaluate",
    "judge",
    "kolmogorov_smirnov",
    "load_evidence",
    "save_evidence",
]
