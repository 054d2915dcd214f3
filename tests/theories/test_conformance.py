"""Every theory of the library, and the template, passes the conformance suite.

By default the verdict, the counterfeit and what comes with them are run for every theory, and all checks for one theory
of each kind; ``pytest -m slow`` runs the others, which compile every theory again.
"""

import importlib

import pytest

from jaxsolve import theories
from jaxsolve.evidence import Conformance

NAMES = [*theories.names(), "_template"]
COMPILED_AGAIN = {"float32", "deterministic", "transformations", "one_trace"}
ONE_OF_EACH_KIND = {
    "_template",
    "adjoint_gradient",
    "alignment_law",
    "commuting_saddle",
    "decoder_risk",
    "lazy_scaling",
    "mixed_traces",
    "ntk_curve",
    "richardson_certificate",
}


def checks():
    for name in NAMES:
        for check in Conformance.checks:
            marks = [pytest.mark.xdist_group(name)]
            if check in COMPILED_AGAIN and name not in ONE_OF_EACH_KIND:
                marks.append(pytest.mark.slow)
            yield pytest.param(name, check, marks=marks, id=f"{name}-{check}")


@pytest.fixture(scope="module")
def suites():
    return {}


@pytest.mark.parametrize(("name", "check"), list(checks()))
def test_conformance(suites, name, check):
    if name not in suites:
        theory = theories.theory_in(importlib.import_module(f"jaxsolve.theories.{name}"))
        suites[name] = Conformance(theory)
    outcome = suites[name].run(check)
    assert outcome.passed, outcome.detail


def test_one_theory_of_each_kind_passes_all_checks_by_default():
    kinds = {theories.load(name).kind for name in ONE_OF_EACH_KIND - {"_template"}}
    assert kinds == {theories.load(name).kind for name in theories.names()}


def test_unknown_theories_are_refused_by_name():
    with pytest.raises(ValueError, match="alignment_law"):
        theories.load("alignmentlaw")
