"""The suite passes what is right, and each way of being wrong fails the check that is meant for it."""

import jax
import pytest

from jaxsolve.evidence import Conformance

from . import toy


def test_a_right_theory_passes_every_check():
    failed = [check for check in Conformance(toy.Right).run_all() if not check.passed]
    assert not failed


@pytest.mark.parametrize(
    ("theory", "check", "told"),
    [
        (toy.NoMetadata, "metadata", "breaks_when"),
        (toy.WrongKind, "metadata", "rule compares"),
        (toy.Float64Only, "float32", "float64"),
        (toy.OtherObservables, "observables", "average"),
        (toy.NotFinite, "finite", "not finite"),
        (toy.KeyFromOutside, "deterministic", "same key"),
        (toy.PythonBranch, "transformations", "racer"),
        (toy.WrongVerdict, "quick_verdict", "disagrees"),
        (toy.Toothless, "counterfeit", "not found out"),
    ],
)
def test_each_fault_fails_its_check(theory, check, told):
    outcome = Conformance(theory).run(check)
    assert not outcome.passed
    assert told in outcome.detail


def test_a_runaway_fails(monkeypatch):
    monkeypatch.setattr("jaxsolve.evidence._conformance.RUNAWAY_SECONDS", 0.0)
    assert not Conformance(toy.Right).run("quick_seconds").passed


def test_unknown_checks_are_refused():
    with pytest.raises(ValueError, match="No check"):
        Conformance(toy.Right).run("beauty")


def test_the_suite_needs_both_dtypes():
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        Conformance(toy.Right)
