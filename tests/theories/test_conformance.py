"""Every theory of the library, and the template, passes the conformance suite."""

import importlib

import pytest

from jaxsolve import theories
from jaxsolve.evidence import Conformance

NAMES = [*theories.names(), "_template"]


@pytest.fixture(scope="module")
def suites():
    return {}


@pytest.mark.parametrize("check", Conformance.checks)
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in NAMES])
def test_conformance(suites, name, check):
    if name not in suites:
        theory = theories.theory_in(importlib.import_module(f"jaxsolve.theories.{name}"))
        suites[name] = Conformance(theory)
    outcome = suites[name].run(check)
    assert outcome.passed, outcome.detail


def test_unknown_theories_are_refused_by_name():
    with pytest.raises(ValueError, match="alignment_law"):
        theories.load("alignmentlaw")
