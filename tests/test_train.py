"""Descent: against loops written out, what is recorded when, and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxsolve._results import RESULTS
from jaxsolve._train import descend

RANDOM = np.random.default_rng(0)
MATRIX = jnp.asarray(RANDOM.standard_normal((7, 4)))
TARGET = jnp.asarray(RANDOM.standard_normal(7))
START = jnp.asarray(RANDOM.standard_normal(4))


class Line(eqx.Module):
    """A linear model with data, a static field and a function among its fields."""

    weights: jax.Array
    matrix: jax.Array
    name: str = eqx.field(static=True, default="line")
    activation: object = jnp.tanh


def squares(weights, matrix=MATRIX):
    return jnp.mean((matrix @ weights - TARGET) ** 2) / 2


SQUARES = jax.value_and_grad(squares)


def test_plain_descent_is_a_matrix_power():
    """`w_s − w* = (I − η C)^s (w_0 − w*)` with `C = AᵀA / n`."""
    rate, steps = 0.1, 30
    run = descend(SQUARES, START, optax.sgd(rate), steps=steps, observe=lambda weights: weights)
    hessian = np.asarray(MATRIX.T @ MATRIX) / 7
    best = np.linalg.solve(hessian, np.asarray(MATRIX.T @ TARGET) / 7)
    for step in (0, 1, 17, steps):
        expected = best + np.linalg.matrix_power(np.eye(4) - rate * hessian, step) @ (np.asarray(START) - best)
        np.testing.assert_allclose(run.records[step], expected, rtol=1e-12)
    np.testing.assert_allclose(run.parameters, run.records[-1], rtol=0)
    np.testing.assert_allclose(run.losses, jax.vmap(squares)(run.records[:-1]), rtol=1e-13)


@pytest.mark.optax
@pytest.mark.parametrize(
    "optimizer",
    [
        optax.adam(optax.cosine_decay_schedule(0.1, 12)),
        optax.adamw(0.1),
        optax.sgd(0.1, momentum=0.9, nesterov=True),
        optax.chain(optax.clip_by_global_norm(0.1), optax.rmsprop(0.1)),
    ],
)
def test_any_optimizer_takes_the_steps_of_a_loop(optimizer):
    weights, state = START, optimizer.init(START)
    for _ in range(12):
        updates, state = optimizer.update(SQUARES(weights)[1], state, weights)
        weights = optax.apply_updates(weights, updates)
    run = descend(SQUARES, START, optimizer, steps=12)
    assert float(jnp.linalg.norm(weights - START)) > 0.1
    np.testing.assert_allclose(run.parameters, weights, rtol=1e-12)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_optimizers_run_under_strict_promotion_and_keep_the_dtype(dtype):
    optimizer = optax.adam(optax.cosine_decay_schedule(0.1, 6))
    gradient = jax.value_and_grad(lambda weights: jnp.sum(weights**2))
    run = descend(gradient, START.astype(dtype), optimizer, steps=6, record_every=3, observe=jnp.sum)
    assert {leaf.dtype for leaf in (run.parameters, run.losses, run.records)} == {jnp.dtype(dtype)}
    with pytest.raises(Exception, match="promotion"):
        optimizer.update(START, optimizer.init(START), START)


def test_records_stand_before_the_step_of_their_number_and_after_the_last():
    run = descend(
        SQUARES, START, optax.sgd(0.1), steps=6, record_every=2, observe=lambda weights: {"loss": squares(weights)}
    )
    assert run.recorded_steps.tolist() == [0, 2, 4, 6]
    np.testing.assert_allclose(run.records["loss"][:-1], run.losses[::2], rtol=1e-13)
    np.testing.assert_allclose(run.records["loss"][-1], squares(run.parameters), rtol=1e-13)
    assert descend(SQUARES, START, optax.sgd(0.1), steps=6).records is None


def test_no_steps_leave_everything_as_it_is():
    run = descend(SQUARES, START, optax.adam(0.1), steps=0, observe=jnp.sum)
    assert jnp.array_equal(run.parameters, START)
    assert run.losses.shape == (0,)
    assert run.records.tolist() == [float(jnp.sum(START))]


def test_a_key_draws_a_fresh_batch_at_every_step():
    def online(weights, *, key):
        rows = jax.random.choice(key, 7, (3,))
        return jax.value_and_grad(lambda weights: jnp.mean((MATRIX[rows] @ weights - TARGET[rows]) ** 2) / 2)(weights)

    key, weights, losses = jax.random.key(3), START, []
    for step in range(5):
        loss, gradient = online(weights, key=jax.random.fold_in(key, step))
        weights = weights - 0.1 * gradient
        losses.append(float(loss))
    run = descend(online, START, optax.sgd(0.1), steps=5, key=key)
    np.testing.assert_allclose(run.parameters, weights, rtol=1e-12)
    np.testing.assert_allclose(run.losses, losses, rtol=1e-12)
    assert jnp.array_equal(run.parameters, descend(online, START, optax.sgd(0.1), steps=5, key=key).parameters)
    other = descend(online, START, optax.sgd(0.1), steps=5, key=jax.random.key(4))
    assert not jnp.array_equal(run.parameters, other.parameters)


def test_a_module_is_trained_where_it_is_marked():
    model = Line(START, MATRIX)
    gradient = eqx.filter_value_and_grad(lambda model: squares(model.weights, model.matrix))
    marks = eqx.tree_at(lambda marks: marks.weights, jax.tree.map(lambda _: False, model), True)
    run = descend(gradient, model, optax.sgd(0.1), steps=9, trainable=marks)
    assert jnp.array_equal(run.parameters.matrix, MATRIX)
    assert run.parameters.activation is jnp.tanh
    np.testing.assert_allclose(
        run.parameters.weights, descend(SQUARES, START, optax.sgd(0.1), steps=9).parameters, rtol=1e-13
    )
    everything = descend(gradient, model, optax.sgd(0.1), steps=9).parameters
    assert not jnp.array_equal(everything.matrix, MATRIX)


def test_data_in_a_partial_is_an_argument_of_the_loop():
    traces, optimizer = 0, optax.sgd(0.1)

    def loss(weights, *, matrix):
        nonlocal traces
        traces += 1
        return jax.value_and_grad(squares)(weights, matrix)

    runs = [
        descend(eqx.Partial(loss, matrix=scale * MATRIX), START, optimizer, steps=3).parameters for scale in (1.0, 2.0)
    ]
    assert not jnp.array_equal(*runs)
    first = traces
    descend(eqx.Partial(loss, matrix=3.0 * MATRIX), START, optimizer, steps=3)
    assert traces == first


def test_memory_grows_with_records_and_not_with_steps():
    def arrays(steps):
        program = jax.make_jaxpr(
            lambda start: (
                descend(
                    SQUARES, start, optax.sgd(0.1), steps=steps, record_every=steps, observe=jnp.sum, throw=False
                ).parameters
            )
        )(START)
        return str(program).count("\n")

    assert arrays(10) == arrays(10_000)
    run = descend(SQUARES, START, optax.sgd(0.1), steps=1000, record_every=500, observe=lambda weights: weights)
    assert run.records.shape == (3, 4)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": -1}, "at least 0"),
        ({"steps": 5, "record_every": 2}, "multiple of record_every"),
        ({"steps": 5, "record_every": 0}, "record_every=0"),
        ({"steps": 5, "trainable": False}, "nothing to train"),
    ],
)
def test_what_cannot_be_run_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        descend(SQUARES, START, optax.sgd(0.1), **options)


def test_a_gradient_of_another_structure_is_refused():
    def partial_gradient(model):
        loss, gradient = eqx.filter_value_and_grad(lambda model: squares(model.weights, model.matrix))(model)
        return loss, eqx.tree_at(lambda gradient: gradient.matrix, gradient, None)

    with pytest.raises(ValueError, match="every leaf that is trained"):
        descend(partial_gradient, Line(START, MATRIX), optax.sgd(0.1), steps=1)


def test_divergence_is_raised_or_told():
    with pytest.raises(ValueError, match=r"of 400 steps, at index \d+"):
        descend(SQUARES, START, optax.sgd(1e3), steps=400)
    run = descend(SQUARES, START, optax.sgd(1e3), steps=400, throw=False)
    failed = np.asarray(run.result != RESULTS.successful)
    assert np.array_equal(failed, ~np.isfinite(np.asarray(run.losses)))
    assert 0 < failed.sum() < 400
