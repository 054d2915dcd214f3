"""The quadratic law holds for small drops, and ends at large ones."""

import jax
import pytest

from jaxsolve.evidence import Result, evaluate
from jaxsolve.theories.linearisation_error import LinearisationError


@pytest.mark.parametrize(
    ("rates", "result"), [((1e-4, 4e-4, 1.6e-3), Result.AGREES), ((2e-2, 6e-2, 0.18), Result.DISAGREES)]
)
def test_the_square_of_small_drops(rates, result):
    theory = LinearisationError.quick(learning_rates=rates)
    assert evaluate(theory, key=jax.random.key(0)).verdicts["loss"].result is result
