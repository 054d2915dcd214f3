"""Training of a linear encoder on Gaussian tasks, solved in closed form."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._numerics import machine_epsilon
from .._types import Scalar
from ._shapes import checked_count, refuse
from ._systems import product


class EncoderCurve(NamedTuple):
    """A risk curve of an encoder in training."""

    risk: Float[Array, " points"]
    """`E ‖b − G_s z‖² / K` at the steps asked for, without a factor 1/2."""
    stable: Bool[Array, ""]
    """Whether the curve tends to a limit from every start; else it is exact all the same, and may diverge."""


def encoder_trajectory(
    initial: Float[Array, "size inputs"],
    target: Float[Array, "size inputs"],
    covariance: Float[Array, "inputs inputs"],
    *,
    learning_rate: Scalar,
    steps: Int[Array, " points"],
) -> Float[Array, "points size inputs"]:
    """Encoders under gradient descent on the population objective `E ‖b − G z‖² / 2`, at any steps.

    With `z` of covariance `Σ_z` and `b = G_* z + ξ`, noise `ξ` independent of `z`,

        G_s − G_* = (G_0 − G_*) (I − η Σ_z)^s,

    by one eigendecomposition and without iteration. The objective has no factor `1/K`: with one, the law holds for
    `η / K` in the place of `η`. It holds for any quadratic objective with Hessian `Σ_z` in each row of `G`, and so for
    an encoder that reads a prompt, with the second moment of the prompt's statistic: [`prompt_moment`][].

    Parameters
    ----------
    initial, target
        `G_0` and `G_*`, which maps `r` latent inputs to `K` observations; `r < K` makes the tasks low-rank.
    covariance
        `Σ_z`, symmetric positive semidefinite. What lies in its kernel never moves.
    learning_rate
        `η`. Outside of `0 < η λ_max < 2` the trajectory diverges, as descent does.
    steps
        Step numbers `s`, at least 0.

    Raises
    ------
    ValueError
        For shapes and dtypes that do not fit, values that are not finite, and a covariance that is not symmetric
        positive semidefinite up to rounding. Under a transformation the last two are run-time errors.

    >>> one = jnp.ones((1, 1))
    >>> found = encoder_trajectory(0 * one, one, one, learning_rate=jnp.array(0.5), steps=jnp.arange(3))
    >>> found[:, 0, 0].tolist()
    [0.0, 0.5, 0.75]
    """
    covariance = _checked(initial, target, covariance, steps, learning_rate=learning_rate)
    return _trajectory(initial, target, covariance, learning_rate, steps)


def encoder_risk_curve(
    initial: Float[Array, "size inputs"],
    target: Float[Array, "size inputs"],
    covariance: Float[Array, "inputs inputs"],
    *,
    noise_variance: Scalar,
    learning_rate: Scalar,
    steps: Int[Array, " points"],
) -> EncoderCurve:
    """The risk along [`encoder_trajectory`][], `E ‖b − G_s z‖² / K` for `ξ ~ (0, σ² I)`:

        R(s) = σ² + 1/K Σ_k ‖D_k‖² λ_k (1 − η λ_k)^{2 s},

    with eigenvalues `λ_k` of `Σ_z` and the columns `D_k` of `(G_0 − G_*) V` for its eigenvectors `V`. No factor 1/2;
    the floor `σ²` is the variance of the noise of one observation.

    Parameters
    ----------
    initial, target, covariance, learning_rate, steps
        As in [`encoder_trajectory`][].
    noise_variance
        `σ²`.

    Returns
    -------
    EncoderCurve
        Stable for `0 < η λ_max < 2`.

    Raises
    ------
    ValueError
        As [`encoder_trajectory`][] does, and for a negative variance.

    >>> one, zero = jnp.ones((1, 1)), jnp.zeros((1, 1))
    >>> found = encoder_risk_curve(
    ...     zero, one, one, noise_variance=jnp.array(0.5), learning_rate=jnp.array(0.5), steps=jnp.arange(3)
    ... )
    >>> found.risk.tolist(), bool(found.stable)
    ([1.5, 0.75, 0.5625], True)
    """
    scalars = {"learning_rate": learning_rate, "noise_variance": noise_variance}
    covariance = _checked(initial, target, covariance, steps, **scalars)
    return _risk_curve(initial, target, covariance, _not_negative(noise_variance), learning_rate, steps)


def online_encoder_curve(
    initial: Float[Array, "size inputs"],
    target: Float[Array, "size inputs"],
    covariance: Float[Array, "inputs inputs"],
    *,
    noise_variance: Scalar,
    learning_rate: Scalar,
    batch: int,
    steps: Int[Array, " points"],
) -> EncoderCurve:
    """The exact mean risk of online stochastic gradient descent, a fresh batch of `B` Gaussian tasks at every step.

    For `z ~ N(0, Σ_z)`, `ξ ~ N(0, σ² I)` and the batch mean of `‖b − G z‖² / 2`, the matrix
    `M_s = E[(G_s − G_*)ᵀ (G_s − G_*)]` obeys, by the fourth moments of `z` and with `Σ = Σ_z`,

        M⁺ = M − η (M Σ + Σ M) + η² ((1 + 1/B) Σ M Σ + tr(Σ M) Σ / B) + η² K σ² Σ / B,

    and the mean risk is `σ² + tr(Σ M_s) / K`. Only the diagonal of `M` in the eigenvectors of `Σ` enters, and it
    closes: `m⁺ = (I − D) m + c` with the symmetric

        D = 2 η Λ − η² (1 + 1/B) Λ² − η²/B λ λᵀ,    c = η² K σ² λ / B.

    A second eigendecomposition, of `D`, gives the mean at any step without iteration. As `B` grows it tends to
    [`encoder_risk_curve`][].

    Parameters
    ----------
    initial, target, covariance, noise_variance, learning_rate, steps
        As in [`encoder_risk_curve`][].
    batch
        `B`, static, at least 1.

    Returns
    -------
    EncoderCurve
        Stable where `η > 0` and all eigenvalues of `D` that belong to moving directions are positive: the risk is
        bounded in the mean square. This asks for more than `η λ_max < 2`.

    Raises
    ------
    ValueError
        As [`encoder_risk_curve`][] does, and for a batch below 1.

    >>> one, zero = jnp.ones((1, 1)), jnp.zeros((1, 1))
    >>> found = online_encoder_curve(
    ...     zero, one, one, noise_variance=jnp.array(0.0), learning_rate=jnp.array(0.5), batch=2, steps=jnp.arange(3)
    ... )
    >>> found.risk.tolist(), bool(found.stable)
    ([1.0, 0.5, 0.25], True)
    """
    batch = checked_count(batch, "batch")
    scalars = {"learning_rate": learning_rate, "noise_variance": noise_variance}
    covariance = _checked(initial, target, covariance, steps, **scalars)
    return _online_curve(initial, target, covariance, _not_negative(noise_variance), learning_rate, batch, steps)


def encoder_risk(
    encoder: Float[Array, "size inputs"],
    target: Float[Array, "size inputs"],
    covariance: Float[Array, "inputs inputs"],
    *,
    noise_variance: Scalar,
) -> Scalar:
    """The risk `E ‖b − G z‖² / K = σ² + tr[(G − G_*) Σ_z (G − G_*)ᵀ] / K` of one encoder.

    A held-out risk from `n` sampled tasks scatters about it with a relative standard deviation of `(2 / (n K))^{1/2}`
    where the noise dominates.

    Raises
    ------
    ValueError
        As [`encoder_risk_curve`][] does.

    >>> one = jnp.ones((1, 1))
    >>> float(encoder_risk(0 * one, 2 * one, one, noise_variance=jnp.array(0.5)))
    4.5
    """
    nowhere = jnp.zeros(0, int)
    covariance = _checked(encoder, target, covariance, nowhere, noise_variance=noise_variance)
    return _risk(encoder, target, covariance, _not_negative(noise_variance))


def checked_covariance(covariance: Array) -> Array:
    """The matrix, where it is finite, symmetric and positive semidefinite up to rounding."""
    covariance = refuse(covariance, ~jnp.isfinite(covariance).all(), "The covariance has NaN or infinite entries.")
    allowed = 1e2 * covariance.shape[0] * machine_epsilon(covariance.dtype) * jnp.abs(covariance).max()
    covariance = refuse(
        covariance,
        jnp.abs(covariance - covariance.T).max() > allowed,
        "A covariance is symmetric; got one that is not. Symmetrise it where the difference is rounding.",
    )
    return refuse(
        covariance,
        jnp.linalg.eigvalsh(covariance)[0] < -allowed,
        "A covariance is positive semidefinite; got one with a negative eigenvalue. Pass a mean of z zᵀ.",
    )


def _checked(first, target, covariance, steps, **scalars):
    inputs = covariance.shape[0]
    if first.ndim != 2 or first.shape != target.shape or covariance.shape != 2 * first.shape[1:] or not first.size:
        raise ValueError(
            "Encoders have shape (size, inputs) and the covariance (inputs, inputs), not empty; got "
            f"{first.shape}, {target.shape} and {covariance.shape}."
        )
    if steps.ndim != 1 or not jnp.issubdtype(steps.dtype, jnp.integer):
        raise ValueError(
            f"steps is a vector of integers; got shape {steps.shape} of {steps.dtype}. Use jnp.arange(steps + 1)."
        )
    if any(scalar.shape for scalar in scalars.values()):
        found = ", ".join(f"{name} {scalar.shape}" for name, scalar in scalars.items())
        raise ValueError(f"The following are scalar arrays; got shapes {found}. Map over several with jax.vmap.")
    dtypes = {array.dtype for array in (first, target, covariance, *scalars.values())}
    if len(dtypes) != 1 or not jnp.issubdtype(first.dtype, jnp.floating):
        raise ValueError(
            f"All arrays share one floating dtype; got {', '.join(sorted(map(str, dtypes)))}. Cast them to float32 or "
            "float64."
        )
    finite = jnp.isfinite(first).all() & jnp.isfinite(target).all()
    for scalar in scalars.values():
        finite &= jnp.isfinite(scalar)
    covariance = refuse(covariance, ~finite, f"An encoder of {inputs} inputs or a scalar has NaN or infinite entries.")
    return checked_covariance(covariance)


def _not_negative(noise_variance):
    return refuse(noise_variance, noise_variance < 0, "The variance of the noise is at least 0; got a negative one.")


def _spectrum(covariance):
    """Eigenvalues, those within rounding of zero exactly zero, and eigenvectors."""
    eigenvalues, vectors = jnp.linalg.eigh(covariance)
    threshold = covariance.shape[0] * machine_epsilon(covariance.dtype) * eigenvalues[-1]
    return jnp.where(eigenvalues > threshold, eigenvalues, 0), vectors


def _powers(base, steps):
    return base[None, :] ** steps.astype(base.dtype)[:, None]


@jax.jit
def _trajectory(initial, target, covariance, learning_rate, steps):
    eigenvalues, vectors = _spectrum(covariance)
    modes = product("ki,ij->kj", initial - target, vectors)
    moved = _powers(1 - learning_rate * eigenvalues, steps)
    return target[None] + product("kj,sj,ij->ski", modes, moved, vectors)


@jax.jit
def _risk_curve(initial, target, covariance, noise_variance, learning_rate, steps):
    eigenvalues, energies = _energies(initial, target, covariance)
    rates = learning_rate * eigenvalues
    excess = _weighted(_powers((1 - rates) ** 2, steps), eigenvalues * energies) / initial.shape[0]
    return EncoderCurve(noise_variance + excess, (learning_rate > 0) & (rates[-1] < 2))


@partial(jax.jit, static_argnums=5)
def _online_curve(initial, target, covariance, noise_variance, learning_rate, batch, steps):
    size = initial.shape[0]
    eigenvalues, energies = _energies(initial, target, covariance)
    rates = learning_rate * eigenvalues
    decay = jnp.diag(2 * rates - (1 + 1 / batch) * rates**2) - rates[:, None] * rates[None, :] / batch
    decays, vectors = jnp.linalg.eigh(decay)
    decays = jnp.minimum(decays, 1)
    count = steps.astype(decays.dtype)[:, None]
    exponents = jnp.where(count == 0, 0, count * jnp.log1p(-decays)[None, :])
    moved = decays != 0
    # 1 + a + … + a^{s−1} for a = 1 − d, which has no cancellation where d is small.
    sums = jnp.where(moved[None, :], -jnp.expm1(exponents) / jnp.where(moved, decays, 1)[None, :], count)
    weights = product("kj,k->j", vectors, eigenvalues)
    source = learning_rate**2 * size * noise_variance / batch * weights
    first = weights * product("kj,k->j", vectors, energies)
    excess = _weighted(jnp.exp(exponents), first) + _weighted(sums, weights * source)
    contracting = (decays[0] >= -machine_epsilon(decays.dtype)) & (jnp.sum(decays > 0) >= jnp.sum(eigenvalues > 0))
    return EncoderCurve(noise_variance + excess / size, (learning_rate > 0) & contracting)


@jax.jit
def _risk(encoder, target, covariance, noise_variance):
    difference = encoder - target
    excess = jnp.sum(product("ki,ij->kj", difference, covariance) * difference)
    return noise_variance + excess / encoder.shape[0]


def _energies(initial, target, covariance):
    eigenvalues, vectors = _spectrum(covariance)
    return eigenvalues, jnp.sum(product("ki,ij->kj", initial - target, vectors) ** 2, axis=0)


def _weighted(growth, weights):
    """Sums over modes, in which a weight of zero times an overflow is zero."""
    return jnp.sum(jnp.where(weights[None, :] == 0, 0, growth * weights[None, :]), axis=1)
