"""The encoder's training in closed form, against descent as it is written and moments as they are derived."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.solver import encoder_risk, encoder_risk_curve, encoder_trajectory, online_encoder_curve

from ..trials.adapter import Adapter

RANDOM = np.random.default_rng(1)
SIZE, INPUTS = 7, 4
ROTATION = np.linalg.qr(RANDOM.standard_normal((INPUTS, INPUTS)))[0]
COVARIANCE = ROTATION @ np.diag([1.0, 0.6, 0.3, 0.0]) @ ROTATION.T
INITIAL, TARGET = RANDOM.standard_normal((2, SIZE, INPUTS))
STEPS = np.arange(301)
NOISE = 0.02


def arrays(covariance=COVARIANCE, dtype=float):
    return tuple(jnp.asarray(array, dtype) for array in (INITIAL, TARGET, covariance))


def scalars(learning_rate=0.5, noise_variance=NOISE, dtype=float):
    return {
        "learning_rate": jnp.asarray(learning_rate, dtype),
        "noise_variance": jnp.asarray(noise_variance, dtype),
        "steps": jnp.asarray(STEPS),
    }


def descent(learning_rate):
    """Gradient descent on `E ‖b − G z‖² / 2`, step by step."""
    encoder = INITIAL
    for _ in STEPS:
        yield encoder
        encoder = encoder + learning_rate * (TARGET - encoder) @ COVARIANCE


def moments(learning_rate, batch):
    """The recursion of the whole matrix `M`, step by step."""
    moment = (INITIAL - TARGET).T @ (INITIAL - TARGET)
    for _ in STEPS:
        yield NOISE + np.trace(COVARIANCE @ moment) / SIZE
        spread = np.trace(COVARIANCE @ moment) + SIZE * NOISE
        moment = (
            moment
            - learning_rate * (moment @ COVARIANCE + COVARIANCE @ moment)
            + learning_rate**2 * (1 + 1 / batch) * COVARIANCE @ moment @ COVARIANCE
            + learning_rate**2 * spread * COVARIANCE / batch
        )


@pytest.mark.parametrize("learning_rate", [0.5, 1.9, 2.05])
def test_the_closed_form_is_iterated_descent(learning_rate):
    given = scalars(learning_rate)
    iterated = np.stack(list(descent(learning_rate)))
    found = encoder_trajectory(*arrays(), learning_rate=given["learning_rate"], steps=given["steps"])
    scale = np.abs(iterated).max(axis=(1, 2))
    assert (np.abs(found - iterated).max(axis=(1, 2)) / scale).max() < 1e-12
    errors = iterated - TARGET
    risks = NOISE + np.einsum("ski,ij,skj->s", errors, COVARIANCE, errors) / SIZE
    curve = encoder_risk_curve(*arrays(), **given)
    assert (np.abs(curve.risk - risks) / risks).max() < 1e-12
    assert bool(curve.stable) == (learning_rate < 2)


def test_what_the_covariance_does_not_see_never_moves():
    given = scalars()
    found = encoder_trajectory(*arrays(), learning_rate=given["learning_rate"], steps=given["steps"])
    kernel = ROTATION[:, 3]
    np.testing.assert_allclose((found - jnp.asarray(INITIAL)[None]) @ kernel, 0, atol=1e-13)


@pytest.mark.parametrize(("learning_rate", "batch", "stable"), [(0.5, 1, True), (0.5, 16, True), (1.5, 1, False)])
def test_the_online_mean_is_the_recursion_of_the_matrix(learning_rate, batch, stable):
    curve = online_encoder_curve(*arrays(), batch=batch, **scalars(learning_rate))
    expected = np.array(list(moments(learning_rate, batch)))
    assert (np.abs(curve.risk - expected) / expected).max() < 1e-11
    assert bool(curve.stable) is stable
    assert bool(expected[-1] < expected[0]) is stable


def test_large_batches_give_the_population_curve():
    batches = (10, 100, 1000)
    population = encoder_risk_curve(*arrays(), **scalars()).risk
    gaps = [
        float(online_encoder_curve(*arrays(), batch=batch, **scalars()).risk[-1] - population[-1]) for batch in batches
    ]
    np.testing.assert_allclose(np.diff(np.log10(gaps)), -1, atol=0.05)


def test_stationary_excess_is_half_the_learning_rate_times_the_trace_over_the_batch():
    """To first order in `η`, and relative to the noise."""
    late = {**scalars(0.01), "steps": jnp.array([20_000])}
    start = (arrays()[1], *arrays()[1:])
    excess = online_encoder_curve(*start, batch=8, **late).risk[0] / NOISE - 1
    assert float(excess) == pytest.approx(0.01 * np.trace(COVARIANCE) / 16, rel=0.01)


def test_a_million_steps_are_one_point():
    late = {**scalars(), "steps": jnp.array([10**6])}
    assert float(encoder_risk_curve(*arrays(), **late).risk[0]) == pytest.approx(NOISE, rel=1e-12)
    online = online_encoder_curve(*arrays(), batch=4, **late).risk[0]
    steady = np.array(list(moments(0.5, 4)))[-1]
    assert float(online) == pytest.approx(steady, rel=1e-9)


def test_the_risk_of_one_encoder_is_that_of_fresh_tasks():
    random = np.random.default_rng(2)
    inputs = random.standard_normal((200_000, INPUTS)) * np.sqrt([1.0, 0.6, 0.3, 0.0]) @ ROTATION.T
    observed = inputs @ TARGET.T + np.sqrt(NOISE) * random.standard_normal((200_000, SIZE))
    losses = ((observed - inputs @ INITIAL.T) ** 2).mean(axis=1)
    risk = float(encoder_risk(*arrays(), noise_variance=jnp.asarray(NOISE)))
    assert abs(losses.mean() - risk) < 4 * losses.std() / 200_000**0.5
    assert risk == pytest.approx(float(encoder_risk_curve(*arrays(), **scalars()).risk[0]), rel=1e-13)


def test_maps_derivatives_and_single_precision():
    rates = jnp.array([0.1, 0.5])

    def last(rate):
        return encoder_risk_curve(*arrays(), **{**scalars(), "learning_rate": rate}).risk[5]

    mapped, slope = jax.vmap(last)(rates), jax.grad(last)(rates[0])
    assert float(mapped[1]) == pytest.approx(float(last(rates[1])), rel=1e-14)
    assert float(slope) == pytest.approx(float(last(rates[0] + 1e-6) - last(rates[0] - 1e-6)) / 2e-6, rel=1e-6)
    single = encoder_risk_curve(*arrays(dtype=jnp.float32), **scalars(dtype=jnp.float32)).risk
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, encoder_risk_curve(*arrays(), **scalars()).risk, rtol=1e-4)


def test_a_curve_that_overflows_has_no_nan():
    late = {**scalars(3.0), "steps": jnp.array([0, 10_000])}
    found = encoder_risk_curve(*arrays(), **late)
    assert found.risk[1] == jnp.inf
    assert not found.stable
    assert online_encoder_curve(*arrays(), batch=2, **late).risk[1] == jnp.inf


def test_the_curve_by_modes_of_the_trial_cases():
    values, amplitudes = np.array([0.2, 1.0, 0.0]), np.array([3.0, 0.5, 1.0])
    found = Adapter().exact_curve(values, amplitudes, 0.7, [0, 3, 8], 0.1)
    expected = [0.1 + (amplitudes * values * (1 - 0.7 * values) ** (2 * step)).sum() for step in (0, 3, 8)]
    np.testing.assert_allclose(found["curve"], expected, rtol=1e-13)
    assert found["stable"] is True
    assert Adapter().exact_curve(values, amplitudes, 2.5, [0], 0.1)["stable"] is False


@pytest.mark.parametrize(
    ("covariance", "changes", "message"),
    [
        (COVARIANCE - 0.1 * np.eye(INPUTS), {}, "negative eigenvalue"),
        (COVARIANCE + np.triu(np.ones((INPUTS, INPUTS)), 1), {}, "symmetric"),
        (COVARIANCE * np.nan, {}, "NaN"),
        (COVARIANCE[:3, :3], {}, r"\(3, 3\)"),
        (COVARIANCE, {"noise_variance": jnp.asarray(-1e-3)}, "at least 0"),
        (COVARIANCE, {"learning_rate": jnp.asarray(jnp.nan)}, "NaN"),
        (COVARIANCE, {"learning_rate": jnp.ones(2)}, r"\(2,\)"),
        (COVARIANCE, {"steps": jnp.ones(3)}, "integers"),
        (COVARIANCE.astype(np.float32), {}, "float32, float64"),
    ],
)
def test_bad_input_is_refused(unchecked, covariance, changes, message):
    first, second, _ = arrays()
    with pytest.raises(ValueError, match=message):
        encoder_risk_curve(first, second, jnp.asarray(covariance), **{**scalars(), **changes})


@pytest.mark.parametrize("batch", [0, 2.5, True])
def test_a_batch_below_one_is_refused(unchecked, batch):
    with pytest.raises(ValueError, match="batch is an integer"):
        online_encoder_curve(*arrays(), batch=batch, **scalars())


def test_a_traced_covariance_is_refused_at_run_time():
    curve = jax.jit(lambda covariance: encoder_risk_curve(*arrays()[:2], covariance, **scalars()).risk)
    with pytest.raises(Exception, match="negative eigenvalue"):
        curve(jnp.asarray(COVARIANCE - 0.1 * np.eye(INPUTS))).block_until_ready()
