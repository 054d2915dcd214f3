"""Traces of words in PH, and what they do not determine."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.certificates import contraction_certificate, depth_risk, order_parameters
from jaxsolve.solver import trajectory

SIZE = 16
EIGENVALUES = np.linspace(0.1, 1, SIZE)


def matrices(*, shared, seed=0, tasks=5, size=4):
    random = np.random.default_rng(seed)
    preconditioner = random.standard_normal((size, size) if shared else (tasks, size, size))
    operators, factors = random.standard_normal((2, tasks, size, size))
    moment = factors @ factors.transpose(0, 2, 1)
    return preconditioner, operators, moment[0] if shared else moment


@pytest.mark.parametrize("shared", [True, False])
def test_traces_are_those_of_the_products(shared):
    preconditioner, operators, moment = matrices(shared=shared)
    words = []
    for i in range(5):
        p, s = (preconditioner, moment) if shared else (preconditioner[i], moment[i])
        h = operators[i]
        words.append([np.trace(w) / 4 for w in (p @ h @ s, p @ h, p @ h @ p @ h, p @ h @ s @ h.T @ p.T)])
    found = order_parameters(*map(jnp.asarray, (preconditioner, operators, moment)))
    np.testing.assert_allclose(found, np.mean(words, axis=0), rtol=1e-12)


@pytest.mark.parametrize("shared", [True, False])
def test_the_risk_after_one_step(shared):
    preconditioner, operators, _ = matrices(shared=shared, seed=1)
    errors = np.random.default_rng(2).standard_normal((5, 4))
    moment = errors[:, :, None] * errors[:, None, :]
    arrays = tuple(map(jnp.asarray, (preconditioner, operators, moment)))
    found = jax.jit(order_parameters)(*arrays)
    zero = jnp.zeros((5, 4))
    risk = depth_risk(trajectory(arrays[0], arrays[1], zero, jnp.asarray(errors), depth=1), zero)
    predicted = risk[0] - 2 * found.residual_overlap + found.residual_energy
    assert float(risk[1]) == pytest.approx(float(predicted), rel=1e-13)
    # With the other order of the factors the identity fails.
    swapped = order_parameters(arrays[1][0], jnp.broadcast_to(arrays[0], arrays[1].shape), arrays[2])
    assert abs(float(risk[0] - 2 * swapped.residual_overlap + swapped.residual_energy) / float(risk[1]) - 1) > 0.1


def rotations():
    haar, triangle = np.linalg.qr(np.random.default_rng(0).standard_normal((SIZE, SIZE)))
    return {"aligned": np.eye(SIZE), "haar": haar * np.sign(np.diag(triangle)), "reversed": np.eye(SIZE)[::-1]}


def described(rotation):
    """Preconditioner, its order parameters, and risks at depths 0 to 4 for errors of unit covariance."""
    preconditioner = rotation * (0.9 / EIGENVALUES) @ rotation.T
    operators = jnp.broadcast_to(jnp.diag(jnp.asarray(EIGENVALUES)), (SIZE, SIZE, SIZE))
    zero = jnp.zeros((SIZE, SIZE))
    basis = np.sqrt(SIZE) * jnp.eye(SIZE)
    risk = depth_risk(trajectory(jnp.asarray(preconditioner), operators, zero, basis, depth=4), zero)
    return preconditioner, order_parameters(jnp.asarray(preconditioner), operators[:1], jnp.eye(SIZE)), risk


def test_equal_spectra_do_not_give_equal_risks():
    spectra, risks = {}, {}
    for name, rotation in rotations().items():
        preconditioner, parameters, risk = described(rotation)
        spectra[name], risks[name] = np.linalg.eigvalsh(preconditioner), risk
        assert float(risk[0]) == pytest.approx(1, rel=1e-14)
        assert float(parameters.residual_overlap) == pytest.approx(float(parameters.first_moment), rel=1e-14)
        one_step = 1 - 2 * parameters.residual_overlap + parameters.residual_energy
        assert float(risk[1]) == pytest.approx(float(one_step), rel=1e-12)
    for name in ("haar", "reversed"):
        np.testing.assert_allclose(spectra[name], spectra["aligned"], rtol=1e-12)
        assert float(risks[name][1]) > 100 * float(risks["aligned"][1])
        assert float(risks[name][4]) > 1e10 * float(risks["aligned"][4])


@pytest.mark.parametrize(
    ("name", "traces", "one_step", "four_steps"),
    [("aligned", (0.9, 0.81, 0.81), 1.0e-2, 1.0e-8), ("reversed", (1.845, 8.728, 8.728), 6.039, 1.06e6)],
)
def test_order_parameters_and_risks_of_the_two_alignments(name, traces, one_step, four_steps):
    preconditioner, parameters, risk = described(rotations()[name])
    np.testing.assert_allclose(parameters[1:], traces, atol=5.1e-4)
    assert float(risk[1]) == pytest.approx(one_step, abs=6e-4)
    assert float(risk[4]) == pytest.approx(four_steps, rel=5e-3)
    operators, errors = jnp.diag(jnp.asarray(EIGENVALUES))[None], jnp.ones((1, SIZE))
    certificate = contraction_certificate(jnp.asarray(preconditioner), operators, errors, depth=0)
    assert bool(certificate.contracts[0]) == (name == "aligned")


def test_misfits_are_refused(unchecked):
    preconditioner, operators, moment = map(jnp.asarray, matrices(shared=True))
    with pytest.raises(ValueError, match=r"error_moment has shape \(4, 4\), shared, or \(5, 4, 4\)"):
        order_parameters(preconditioner, operators, moment[0])
    with pytest.raises(ValueError, match="preconditioner has shape"):
        order_parameters(preconditioner[:3, :3], operators, moment)
    with pytest.raises(ValueError, match="one floating dtype"):
        order_parameters(preconditioner, operators, moment.astype(jnp.float32))
