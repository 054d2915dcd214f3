"""Every theory of the library, and the template, passes the conformance suite.

By default the verdict, the counterfeit and what comes with them are run for every theory, and all checks for one theory
of each kind; ``pytest -m slow`` runs the others, which compile every theory again.
"""

import importlib

import jax
import pytest

from jaxsolve import theories
from jaxsolve.evidence import Conformance

NAMES = [*theories.names(), "_template"]
COMPILED_AGAIN = ("float32", "deterministic", "transformations", "one_trace")
COMPILED_ONCE = tuple(check for check in Conformance.checks if check not in COMPILED_AGAIN)
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


@pytest.fixture(autouse=True)
def _programs_of_one_theory_at_a_time():
    yield
    jax.clear_caches()


def failures(name, checks):
    suite = Conformance(theories.theory_in(importlib.import_module(f"jaxsolve.theories.{name}")))
    outcomes = [suite.run(check) for check in checks]
    return [f"{outcome.name}: {outcome.detail}" for outcome in outcomes if not outcome.passed]


@pytest.mark.parametrize("name", NAMES)
def test_conformance(name):
    assert not failures(name, Conformance.checks if name in ONE_OF_EACH_KIND else COMPILED_ONCE)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ONE_OF_EACH_KIND])
def test_conformance_of_what_is_compiled_again(name):
    assert not failures(name, COMPILED_AGAIN)


def test_one_theory_of_each_kind_passes_all_checks_by_default():
    kinds = {theories.load(name).kind for name in ONE_OF_EACH_KIND - {"_template"}}
    assert kinds == {theories.load(name).kind for name in theories.names()}


def test_unknown_theories_are_refused_by_name():
    with pytest.raises(ValueError, match="alignment_law"):
        theories.load("alignmentlaw")
