"""The measured gap against training by hand, and the null model against the recursion that it closes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.curves import GapOverWidths, constraint_count_gap, training_gap
from jaxsolve.feedback import MLP, Backprop, FeedbackAlignment, alignment_constraints
from jaxsolve.tangent import kernel

WIDTHS = (3, 6, 6, 2)
NETWORK = MLP.initialise(WIDTHS, key=jax.random.key(0))
INPUTS, TARGETS = (jnp.asarray(np.random.default_rng(1).standard_normal(shape)) for shape in ((7, 3), (7, 2)))
RATE = jnp.asarray(0.05)


def test_the_null_model_is_a_linear_recursion_with_a_slower_kernel():
    matrix = np.asarray(kernel(NETWORK, INPUTS, Backprop()))
    start = np.asarray(NETWORK(INPUTS) - TARGETS).ravel()
    parameters = sum(a * b for a, b in zip(WIDTHS[1:], WIDTHS[:-1], strict=True))
    kept = 1 - alignment_constraints(WIDTHS) / parameters
    losses = []
    for share in (kept, 1.0):
        residual = start
        for _ in range(30):
            residual = residual - 0.05 * share / 7 * matrix @ residual
        losses.append((residual**2).sum() / 14)
    measured = float(constraint_count_gap(NETWORK, INPUTS, TARGETS, learning_rate=RATE, steps=30))
    assert measured == pytest.approx(losses[0] - losses[1], rel=1e-10)
    assert measured > 1e-3


def test_the_gap_is_that_of_two_runs_by_hand():
    rule = FeedbackAlignment.sample(NETWORK, key=jax.random.key(2))
    losses = []
    for matrices in ([np.asarray(matrix) for matrix in rule.feedback], None):
        weights = [np.asarray(weight) for weight in NETWORK.weights]
        for step in range(21):
            hidden, gates = [np.asarray(INPUTS)], []
            for weight in weights[:-1]:
                before = hidden[-1] @ weight.T
                gates.append(before > 0)
                hidden.append(before * (before > 0))
            residual = hidden[-1] @ weights[-1].T - np.asarray(TARGETS)
            if step == 20:
                losses.append((residual**2).sum() / 14)
                break
            delta, directions = residual / 7, []
            for layer in (2, 1, 0):
                directions.insert(0, delta.T @ hidden[layer])
                if layer:
                    back = weights[layer].T if matrices is None else matrices[layer - 1]
                    delta = delta @ back.T * gates[layer - 1]
            weights = [weight - 0.05 * direction for weight, direction in zip(weights, directions, strict=True)]
    measured = float(training_gap(NETWORK, INPUTS, TARGETS, rule, learning_rate=RATE, steps=20))
    assert measured == pytest.approx(losses[0] - losses[1], rel=1e-10)


def test_widths_are_run_each_for_itself():
    runs = GapOverWidths.drawn((4, 6), inputs=3, outputs=2, examples=7, learning_rate=0.05, steps=5, seed=3)
    keys = jax.random.split(jax.random.key(4), 3)
    gaps = jax.vmap(runs.trained)(keys)
    assert gaps.shape == (3, 2)
    rule = FeedbackAlignment.sample(runs.networks[1], key=jax.random.fold_in(keys[2], 1))
    alone = training_gap(runs.networks[1], runs.inputs, runs.targets, rule, learning_rate=RATE, steps=5)
    np.testing.assert_allclose(gaps[2, 1], alone, rtol=1e-10)
    np.testing.assert_array_equal(runs.widths, [4, 6])


def test_backpropagation_has_no_gap_to_itself():
    assert training_gap(NETWORK, INPUTS, TARGETS, Backprop(), learning_rate=RATE, steps=5) == 0


@pytest.mark.parametrize(("targets", "steps"), [(TARGETS[:3], 5), (TARGETS, -1)])
def test_bad_input_is_refused(unchecked, targets, steps):
    with pytest.raises(ValueError, match="training_gap takes"):
        training_gap(NETWORK, INPUTS, targets, Backprop(), learning_rate=RATE, steps=steps)


@pytest.mark.parametrize(("widths", "examples"), [((), 7), ((4,), 0)])
def test_runs_without_widths_or_examples_are_refused(widths, examples):
    with pytest.raises(ValueError, match="at least one width"):
        GapOverWidths.drawn(widths, inputs=3, outputs=2, examples=examples, learning_rate=0.05, steps=5, seed=3)
