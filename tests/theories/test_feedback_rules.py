"""Backward rules as recursions: the two routes, and what a missing transpose does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.theories.feedback_rules import FeedbackRules


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(FeedbackRules.quick(), key=jax.random.key(0))


def test_the_routes_agree_to_twelve_digits(evaluation):
    assert evaluation.grid.tolist() == [1, 3]
    for name, verdict in evaluation.verdicts.items():
        assert verdict.result is Result.AGREES, name
        assert verdict.discrepancy < 1e-12, name


def test_the_rules_are_different(evaluation):
    exact, sequential, direct, output = (
        np.asarray(evaluation.pairs[name].predicted.value) for name in FeedbackRules.observables[2:6]
    )
    for one, other in ((exact, sequential), (exact, direct), (sequential, direct)):
        distance = ((one - other) ** 2).sum(axis=(1, 2, 3)) / (one**2).sum(axis=(1, 2, 3))
        assert (distance > 0.01).all()
    for point, depth in enumerate((1, 3)):
        assert np.array_equal(exact[point, depth], output[point])
        assert not exact[point, depth + 1 :].any()


def test_a_forgotten_transpose_is_seen_by_what_depends_on_it(evaluation):
    theory = FeedbackRules.quick()
    measured = {name: pair.measured for name, pair in evaluation.pairs.items()}
    fake = judge(theory, evaluation.grid, theory.counterfeit().predict(evaluation.grid), measured)
    found = {name for name, verdict in fake.verdicts.items() if verdict.result is Result.DISAGREES}
    assert found == {"feedback_alignment", "erosion"}


def test_without_feedback_only_the_output_layer_moves():
    theory = FeedbackRules.quick(depths=(2,))
    silent = FeedbackRules(
        theory.inputs, theory.targets, theory.weights, 0 * theory.feedback, 0 * theory.direct, theory.depths
    )
    for curves in (silent.predict(silent.grid()), silent.sample(silent.grid(), key=jax.random.key(0))):
        gradient = np.asarray(curves["feedback_alignment"].value[0])
        assert not gradient[:-1].any()
        exact = jnp.sum(curves["backprop"].value[0] ** 2, axis=(1, 2))
        share = 1 - exact[-1] / exact.sum()
        np.testing.assert_allclose(curves["erosion"].value[0], share, rtol=1e-12)
