"""The split of a composed error, its certificate, and the prompted tasks they are tried on."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.certificates import (
    compose_risk,
    composed_certificate,
    count_violations,
    energy_norm,
    prompted_diffusion,
)
from jaxsolve.datasets import airfoil_mesh
from jaxsolve.pde import (
    ParametricDiffusion,
    TriangleMesh,
    cosine_modes,
    ellipticity_certificate,
    interval_grid,
    square_grid,
    triangle_grid,
)
from jaxsolve.solver import population_gradient, trajectory

DEPTH = 6
DRAWN = prompted_diffusion(24, size=8, prompt_size=4, noise=0.3, generator=np.random.default_rng(0))
OPERATORS, ESTIMATES, SOLUTIONS = (jnp.asarray(array) for array in DRAWN[:3])
SIDES = jnp.einsum("tij,tj->ti", OPERATORS, SOLUTIONS)
SKEW = 0.3 * np.random.default_rng(1).standard_normal((8, 8))
PRECONDITIONER = jnp.asarray(np.linalg.inv(DRAWN.reference) @ (np.eye(8) + SKEW / 8**0.5))
START = jnp.asarray(np.random.default_rng(2).standard_normal((24, 8)))


def errors(estimates=DRAWN.estimates):
    """Errors against the truth, step by step."""
    iterate, found = np.asarray(START), []
    for _ in range(DEPTH + 1):
        found.append(iterate - DRAWN.solutions)
        residual = np.asarray(SIDES) - np.einsum("tij,tj->ti", estimates, iterate)
        iterate = iterate + residual @ np.asarray(PRECONDITIONER).T
    return np.stack(found)


def test_the_parts_add_up_to_the_error_itself():
    found = compose_risk(PRECONDITIONER, ESTIMATES, SIDES, SOLUTIONS, START, depth=DEPTH)
    expected = (errors() ** 2).mean(axis=(1, 2))
    np.testing.assert_allclose(found.total, expected, rtol=1e-13)
    np.testing.assert_allclose(found.decoder + found.floor + found.interaction, expected, rtol=1e-13)
    assert (np.abs(found.interaction) <= 2 * np.sqrt(found.decoder * found.floor) * (1 + 1e-12)).all()


def test_the_floor_is_the_effect_of_the_wrong_operator():
    difference = np.einsum("tij,tj->ti", DRAWN.operators - DRAWN.estimates, DRAWN.solutions)
    floor = np.linalg.solve(DRAWN.estimates, difference[:, :, None])[:, :, 0]
    found = compose_risk(PRECONDITIONER, ESTIMATES, SIDES, SOLUTIONS, START, depth=200)
    assert float(found.floor) == pytest.approx((floor**2).mean(), rel=1e-12)
    assert float(found.total[-1]) == pytest.approx(float(found.floor), rel=1e-9)
    assert float(found.decoder[-1]) < 1e-12 * float(found.floor)


def test_a_true_estimate_has_no_floor():
    found = compose_risk(PRECONDITIONER, OPERATORS, SIDES, SOLUTIONS, START, depth=DEPTH)
    assert float(found.floor) < 1e-24
    np.testing.assert_allclose(found.total, found.decoder, rtol=1e-10)


def test_no_bound_is_violated_and_that_of_the_true_operator_is():
    certificate = composed_certificate(PRECONDITIONER, ESTIMATES, OPERATORS, SOLUTIONS, START, depth=DEPTH)
    norms = jnp.asarray(np.linalg.norm(errors(), axis=2))
    for bounds in (certificate.norm_bounds, certificate.power_bounds):
        assert int(count_violations(norms, bounds)) == 0
    assert (np.asarray(certificate.power_bounds) <= np.asarray(certificate.norm_bounds) * (1 + 1e-12)).all()
    wrong = composed_certificate(PRECONDITIONER, OPERATORS, OPERATORS, SOLUTIONS, START, depth=DEPTH)
    assert int(count_violations(norms, wrong.power_bounds)) > 0


def test_the_decoder_part_bounds_the_distance_to_the_estimated_solution():
    certificate = composed_certificate(PRECONDITIONER, ESTIMATES, OPERATORS, SOLUTIONS, START, depth=DEPTH)
    estimated = np.linalg.solve(DRAWN.estimates, np.asarray(SIDES)[:, :, None])[:, :, 0]
    distances = np.linalg.norm(errors() + DRAWN.solutions - estimated, axis=2)
    assert int(count_violations(jnp.asarray(distances), certificate.decoder.power_bounds)) == 0
    np.testing.assert_allclose(certificate.decoder.norm_bounds[0], distances[0], rtol=1e-12)


def test_a_singular_estimate_is_told():
    singular = ESTIMATES.at[3].set(0.0)
    for function, arguments in (
        (compose_risk, (SIDES, SOLUTIONS, START)),
        (composed_certificate, (OPERATORS, SOLUTIONS, START)),
    ):
        with pytest.raises(ValueError, match=r"1 of 24 tasks, at index 3"):
            function(PRECONDITIONER, singular, *arguments, depth=2)
    certificate = composed_certificate(PRECONDITIONER, singular, OPERATORS, SOLUTIONS, START, depth=2, throw=False)
    assert np.isnan(certificate.power_bounds[:, 3]).all()
    assert np.isfinite(np.delete(certificate.power_bounds, 3, axis=1)).all()


def test_bad_input_is_refused(unchecked):
    with pytest.raises(ValueError, match="got -1"):
        compose_risk(PRECONDITIONER, ESTIMATES, SIDES, SOLUTIONS, START, depth=-1)
    with pytest.raises(ValueError, match="one row per task"):
        compose_risk(PRECONDITIONER, ESTIMATES, SIDES[0], SOLUTIONS, START, depth=1)
    with pytest.raises(ValueError, match="one true operator per estimate"):
        composed_certificate(PRECONDITIONER, ESTIMATES, OPERATORS[0], SOLUTIONS, START, depth=1)


def test_prompts_without_noise_give_the_operators():
    found = prompted_diffusion(16, noise=0.0, generator=np.random.default_rng(3))
    assert np.abs(found.estimates - found.operators).max() < 1e-11
    assert found.projected == 0
    np.testing.assert_allclose(np.linalg.eigvalsh(found.reference)[-1], 1)


def test_estimates_improve_with_the_prompt_and_stay_positive_definite():
    gaps = []
    for prompt_size in (4, 64):
        found = prompted_diffusion(128, prompt_size=prompt_size, noise=0.2, generator=np.random.default_rng(4))
        assert np.linalg.eigvalsh(found.estimates)[:, 0].min() > 0
        gaps.append(((found.estimates - found.operators) ** 2).sum())
    assert gaps[1] < gaps[0] / 8
    assert 0 < prompted_diffusion(64, noise=1.0, generator=np.random.default_rng(5)).projected <= 64


@pytest.mark.parametrize("bad", [{"noise": -1.0}, {"amplitude": 0.3}, {"prompt_size": 0}, {"size": 4}])
def test_prompts_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match="prompted_diffusion takes"):
        prompted_diffusion(4, generator=np.random.default_rng(0), **bad)


def whole_families():
    square, airfoil = square_grid(5), triangle_grid(TriangleMesh(*airfoil_mesh()))
    return {
        "square": ParametricDiffusion(square, cosine_modes(square, amplitude=0.3), link="log-affine"),
        "airfoil": ParametricDiffusion(airfoil, cosine_modes(airfoil)),
        "log-affine airfoil": ParametricDiffusion(airfoil, cosine_modes(airfoil), link="log-affine"),
    }


@pytest.mark.parametrize("name", ["square", "airfoil", "log-affine airfoil"])
def test_from_prompt_to_solution_on_every_mesh_and_link(name):
    """The split holds and no bound is violated, before training of the decoder and after.

    The mean operator's inverse keeps the rate that was known before any prompt was drawn.
    """
    family = whole_families()[name]
    drawn = prompted_diffusion(6, family=family, noise=0.1, prompt_size=6, generator=np.random.default_rng(2))
    operators, estimates, solutions, reference = (jnp.asarray(array) for array in drawn[:4])
    prior = ellipticity_certificate(family)
    preconditioner = prior.step * jnp.linalg.inv(reference)
    sides = jnp.einsum("tij,tj->ti", operators, solutions)
    start, moment = jnp.zeros_like(solutions), jnp.eye(len(reference))
    trained, losses = preconditioner, []
    for _ in range(4):
        loss, gradient = population_gradient(trained, operators=operators, second_moment=moment, depth=2)
        trained = trained - 3e-3 * jnp.linalg.norm(trained) / jnp.linalg.norm(gradient) * gradient
        losses.append(float(loss))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.99 * losses[0]
    for matrix in (trained, preconditioner):
        found = compose_risk(matrix, estimates, sides, solutions, start, depth=DEPTH)
        iterates = trajectory(matrix, estimates, sides, start, depth=DEPTH)
        total = jnp.mean((iterates - solutions[None]) ** 2, axis=(1, 2))
        np.testing.assert_allclose(found.decoder + found.floor + found.interaction, total, rtol=1e-12)
        assert 0 < float(found.floor) < float(found.total[0])
        certificate = composed_certificate(matrix, estimates, operators, solutions, start, depth=DEPTH)
        norms = jnp.linalg.norm(iterates - solutions[None], axis=2)
        assert int(count_violations(norms, certificate.power_bounds)) == 0
    reached = np.linalg.solve(estimates, sides[:, :, None])[:, :, 0]
    energies = np.asarray(energy_norm(estimates, iterates - reached[None]))
    rates = energies[1:] / energies[:-1]
    assert rates.max() <= float(prior.contraction)
    assert rates.max() > 0.2 * float(prior.contraction)


def test_a_family_outside_ellipticity_is_refused():
    grid = interval_grid(7)
    family = ParametricDiffusion(grid, cosine_modes(grid, amplitude=0.6))
    with pytest.raises(ValueError, match="Least coefficient"):
        prompted_diffusion(2, family=family, generator=np.random.default_rng(0))
