"""Theories of the cost of alignment: statements that are false are found to be."""

import jax
import pytest

from jaxsolve.evidence import Result, evaluate
from jaxsolve.theories.chance_threshold import ChanceThreshold
from jaxsolve.theories.coverage_law import DIMENSIONS, ENSEMBLES, SCALES

KEY = jax.random.key(0)


def test_half_the_threshold_is_found_to_be_wrong():
    verdicts = evaluate(ChanceThreshold.quick(leading_order=True), key=KEY).verdicts
    assert {verdict.result for verdict in verdicts.values()} == {Result.DISAGREES}


def test_every_law_of_coverage_has_the_mean_of_its_ensemble():
    for (ensemble, uniform), dimension, scale in zip(ENSEMBLES, DIMENSIONS, SCALES, strict=True):
        expected = 1 / 128 if uniform else ensemble.second_moment()[0, 0]
        assert 1 / (dimension * scale) == pytest.approx(expected, rel=1e-12)
