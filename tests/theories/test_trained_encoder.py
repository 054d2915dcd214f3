"""What training an encoder can reach: the bound is attained, fixed weights are near it, a linear read-out is not."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.solver import WeakFormEncoder, draw_prompts
from jaxsolve.theories.trained_encoder import TrainedEncoder
from jaxsolve.theories.trained_readout import TrainedReadout

WEIGHTS = ("identity", "mean_inverse", "mean_inverse_square")


@pytest.fixture(scope="module")
def trained():
    return TrainedEncoder.quick()


def both_sides(theory):
    grid = theory.grid()
    predicted, measured = theory.predict(grid), theory.sample(grid, key=jax.random.key(0))
    return ({name: np.asarray(curve.value) for name, curve in side.items()} for side in (predicted, measured))


def test_the_bound_on_the_precision_is_attained_by_the_weights_of_the_task(trained):
    operators = trained.family.operators(trained.parameters[:4])
    theory = dataclasses.replace(
        trained,
        weight_roots=jnp.stack([jnp.linalg.inv(operators)] * 2),
        parameters=trained.parameters[:4],
        states=trained.states[:4],
        steps=(0, 1, 2, 3),
    )
    predicted, measured = both_sides(theory)
    shares = measured["precision_from_mean_inverse"] / predicted["precision_from_mean_inverse"]
    np.testing.assert_allclose(np.diag(shares), 1, rtol=1e-8)
    assert (shares[~np.eye(4, dtype=bool)] < 0.99).all()


def test_no_weights_at_all_violate_the_bounds(trained):
    roots = np.random.default_rng(0).standard_normal((2, 4, 15, 15))
    roots[1, 0] = np.linalg.inv(trained.family.mean_operator)
    predicted, measured = both_sides(dataclasses.replace(trained, weight_roots=jnp.asarray(roots)))
    for name, values in measured.items():
        assert (values <= predicted[name] * (1 + 1e-9)).all(), name


def test_training_improves_poor_weights_and_does_not_beat_good_ones(trained):
    predicted, measured = both_sides(trained)
    gains = {name: np.median(values, axis=1) for name, values in measured.items()}
    poor, good = gains["gain_from_mean_inverse"], gains["gain_from_mean_inverse_square"]
    assert poor[-1] > 1.2 * poor[0]
    assert poor[-1] < 0.6
    assert 0.95 < good[-1] < 1
    efficiency = measured["precision_from_mean_inverse_square"][0] / predicted["precision_from_mean_inverse_square"][0]
    assert (1 / efficiency <= predicted["gain_from_mean_inverse"][0] * (1 + 1e-9)).all()


def test_the_variance_is_that_of_estimates_from_noisy_states(trained):
    """`E (ẑ − z)² = s² V(W)` on drawn noise, for a noise that is small."""
    encoder = WeakFormEncoder(trained.family, trained.weight_roots[0, -1], jnp.eye(4))
    loads = jnp.einsum("tij,tpj->tpi", trained.family.operators(trained.parameters), trained.states)
    noise = jax.random.normal(jax.random.key(3), (200, *loads.shape))

    def squares(noise):
        found = encoder.estimate(trained.states + 1e-4 * noise, loads, throw=False).coefficients
        return jnp.mean((found - trained.parameters) ** 2, axis=1) / 1e-8

    measured = trained.sample(trained.grid(), key=jax.random.key(0))["precision_from_mean_inverse"].value[-1]
    ratio = jax.lax.map(squares, noise).mean(axis=0) * measured
    assert float(ratio.mean()) == pytest.approx(1, abs=0.04)


@pytest.mark.parametrize(("noise", "wins"), [(1e-3, False), (0.3, True)])
def test_a_linear_read_out_has_a_floor_and_wins_in_large_noise(noise, wins):
    """It never solves the system of its prompt: the scatter of `G` from prompt to prompt stays in its error."""
    theory = TrainedReadout.quick(state_noise=noise, load_noise=0.0, tasks=100)
    optimum = float(theory.predict(jnp.array([1e9]))["risk"].value[0])
    family = theory.encoder.family
    prompts = draw_prompts(family.operators(theory.parameters), pairs=8, state_noise=noise, key=jax.random.key(0))
    encoders = [WeakFormEncoder.from_family(family, weights=weights) for weights in WEIGHTS]
    found = [encoder.estimate(*prompts).coefficients for encoder in encoders]
    errors = [float(jnp.mean((estimate - theory.parameters) ** 2)) for estimate in found]
    if wins:
        assert optimum < 0.7 * min(errors)
    else:
        assert 0.05 < optimum < 0.15
        assert optimum > 100 * max(errors)


def test_the_read_out_of_the_moments_is_the_best_on_drawn_prompts():
    theory = TrainedReadout.quick(tasks=64)
    family = theory.encoder.family
    operators = jnp.repeat(family.operators(theory.parameters), 64, axis=0)
    truth = jnp.repeat(theory.parameters, 64, axis=0)
    prompts = draw_prompts(operators, pairs=8, state_noise=0.03, load_noise=0.05, key=jax.random.key(1))
    pooled = theory.encoder.normal_equations(*prompts)[1]
    weights = theory.predict(jnp.array([1e9]))["weights"].value.reshape(4, 4)
    best = jnp.linalg.lstsq(pooled, truth)[0].T
    errors = [float(jnp.mean((pooled @ readout.T - truth) ** 2)) for readout in (best, weights)]
    assert errors[0] <= errors[1] < 1.01 * errors[0]
