"""Training of a preconditioner through one step: a quadratic loss, solved in steps and in time."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._results import RESULTS, first_failure, raise_failures
from .._types import Scalar


class OneStepMoments(NamedTuple):
    """What training through one step sees of the tasks: the gradient at `P` is `P C − B`.

    From [`one_step_moments`][] or [`wishart_one_step_moments`][].
    """

    curvature: Float[Array, "size size"]
    """`C = E[H S Hᵀ] / K`."""
    slope: Float[Array, "size size"]
    """`B = E[S Hᵀ] / K`."""


class OneStepCurve(NamedTuple):
    """A training curve in closed form, from [`one_step_descent`][]."""

    preconditioner: Float[Array, "points size size"]
    """`P_s` at the steps asked for."""
    stable: Bool[Array, ""]
    """Whether `0 < η λ < 2` for the largest eigenvalue `λ` of `C`; else the curve is exact and does not converge."""


def one_step_moments(
    operators: Float[Array, "tasks size size"], second_moment: Float[Array, "size size"]
) -> OneStepMoments:
    """The moments of a set of tasks, each of the same weight.

    With `S = E[e_0 e_0ᵀ]` independent of `H`, the loss of one step, [`jaxsolve.solver.population_loss`][] at depth 1,
    is

        1/(2K) · mean of tr[(I − P H) S (I − P H)ᵀ] = tr(S)/(2K) − tr(P Bᵀ) + tr(P C Pᵀ)/2.

    Parameters
    ----------
    operators
        `H`, symmetric or not.
    second_moment
        `S`. Only its symmetric part enters.

    Raises
    ------
    ValueError
        For shapes that do not fit.

    >>> moments = one_step_moments(2 * jnp.ones((1, 1, 1)), jnp.ones((1, 1)))
    >>> moments.curvature.tolist(), moments.slope.tolist()
    ([[4.0]], [[2.0]])
    """
    tasks, size = operators.shape[0], operators.shape[-1]
    if operators.shape != (tasks, size, size) or second_moment.shape != (size, size) or not operators.size:
        raise ValueError(
            "One step takes operators (tasks, size, size), not empty, and one second moment (size, size); got "
            f"{operators.shape} and {second_moment.shape}."
        )
    symmetric = (second_moment + second_moment.T) / 2
    carried = jnp.einsum("tij,jk->tik", operators, symmetric, precision="highest")
    curvature = jnp.einsum("tik,tlk->il", carried, operators, precision="highest")
    return OneStepMoments(curvature / (tasks * size), carried.mean(axis=0).T / size)


def wishart_one_step_moments(
    covariance: Float[Array, "size size"], second_moment: Float[Array, "size size"], *, freedom: Scalar
) -> OneStepMoments:
    """The moments of Wishart tasks: `H` is the mean of `x xᵀ` over `n` vectors `x ~ N(0, Σ)`.

    The mean over tasks is exact,

        E[H] = Σ,   E[H S H] = (1 + 1/n) Σ S Σ + tr(S Σ) Σ / n.

    Parameters
    ----------
    covariance
        `Σ`, symmetric.
    second_moment
        `S`. Only its symmetric part enters.
    freedom
        `n`, degrees of freedom.

    >>> wishart_one_step_moments(jnp.eye(1), jnp.eye(1), freedom=jnp.array(4.0)).curvature.tolist()
    [[1.5]]
    """
    size = len(covariance)
    symmetric = (second_moment + second_moment.T) / 2
    carried = jnp.matmul(covariance, symmetric, precision="highest")
    mean = (1 + 1 / freedom) * jnp.matmul(carried, covariance, precision="highest")
    return OneStepMoments((mean + jnp.trace(carried) * covariance / freedom) / size, carried.T / size)


def one_step_descent(
    initial: Float[Array, "size size"],
    moments: OneStepMoments,
    *,
    learning_rate: Scalar,
    steps: Int[Array, " points"],
) -> OneStepCurve:
    """Gradient descent on the loss of one step, at any steps without iterating.

    With the optimum `P* = B C⁻¹` the law is `P_s − P* = (P_0 − P*) (I − η C)^s`. It is evaluated in the eigenvectors of
    `C` as `P_0 (I − η C)^s + B η Σ_{j<s} (I − η C)^j`, which needs no inverse: directions that no task sees stay where
    they are.

    Parameters
    ----------
    initial
        `P_0`, any matrix.
    moments
        `C` and `B`.
    learning_rate
        `η`.
    steps
        Step numbers `s`, at least 0.

    Raises
    ------
    ValueError
        For a step number that is negative.

    >>> moments = OneStepMoments(jnp.eye(1), jnp.eye(1))
    >>> curve = one_step_descent(jnp.zeros((1, 1)), moments, learning_rate=jnp.array(0.5), steps=jnp.arange(3))
    >>> curve.preconditioner.ravel().tolist(), bool(curve.stable)
    ([0.0, 0.5, 0.75], True)
    """
    steps = _not_negative(steps, "steps")
    eigenvalues, eigenvectors = _spectrum(moments)
    rates = (learning_rate * eigenvalues)[None, :]
    count = steps.astype(rates.dtype)[:, None]
    powers = (1 - rates) ** count
    slow = rates < 0.5
    lost = jnp.where(slow, -jnp.expm1(count * jnp.log1p(-jnp.where(slow, rates, 0))), 1 - powers)
    sums = jnp.where(rates > 0, lost / jnp.where(rates > 0, rates, 1), count)
    path = _path(initial, moments, eigenvectors, powers, learning_rate * sums)
    return OneStepCurve(path, (rates[0, -1] > 0) & (rates[0, -1] < 2))


def one_step_flow(
    initial: Float[Array, "size size"], moments: OneStepMoments, *, times: Float[Array, " points"]
) -> Float[Array, "points size size"]:
    """Gradient flow `dP/dt = B − P C` on the loss of one step, at any times.

    `P_t − P* = (P_0 − P*) exp(−t C)`; the limit of [`one_step_descent`][] at `η s = t`, which describes the parameters.

    Raises
    ------
    ValueError
        For a time that is negative.

    >>> moments = OneStepMoments(jnp.eye(1), jnp.eye(1))
    >>> one_step_flow(jnp.zeros((1, 1)), moments, times=jnp.array([0.0, jnp.inf])).ravel().tolist()
    [0.0, 1.0]
    """
    times = _not_negative(times, "times")
    eigenvalues, eigenvectors = _spectrum(moments)
    exponents = eigenvalues[None, :] * times[:, None]
    seen = eigenvalues[None, :] > 0
    sums = jnp.where(seen, -jnp.expm1(-exponents) / jnp.where(seen, eigenvalues[None, :], 1), times[:, None])
    return _path(initial, moments, eigenvectors, jnp.exp(-exponents), sums)


def one_step_mode_flow(
    initial: Float[Array, "*modes"],
    eigenvalues: Float[Array, "*modes"],
    second_moments: Float[Array, "*modes"],
    *,
    time: Scalar,
) -> Float[Array, "*modes"]:
    """The gains of one operator in its eigenvectors, `dp/dt = s h (1 − p h)`, at a time.

        p(t) = p_0 e^{−x} + s h t (1 − e^{−x})/x,   x = s h² t,

    by modes, however different their rates. It has no factor `1/K`: with the loss of [`one_step_moments`][] the time is
    that of the flow divided by `K`.

    Parameters
    ----------
    initial
        `p_0`.
    eigenvalues, second_moments
        `h`, of any sign, and `s`, not negative.
    time
        `t`.

    Raises
    ------
    ValueError
        For a time that is negative.

    >>> one_step_mode_flow(jnp.zeros(2), jnp.array([0.0, 2.0]), jnp.ones(2), time=jnp.array(1e9)).tolist()
    [0.0, 0.5]
    """
    time = _not_negative(time, "times")
    exponents = second_moments * eigenvalues**2 * time
    moving = exponents > 0
    approach = -jnp.expm1(-exponents) / jnp.where(moving, eigenvalues, 1)
    return initial * jnp.exp(-exponents) + jnp.where(moving, approach, second_moments * eigenvalues * time)


def _not_negative(values, of):
    return raise_failures(values, first_failure((jnp.atleast_1d(~(values >= 0)), RESULTS.negative_time)), of=of)


def _spectrum(moments):
    eigenvalues, eigenvectors = jnp.linalg.eigh(moments.curvature)
    noise = jnp.finfo(eigenvalues.dtype).eps * len(eigenvalues) * eigenvalues[-1]
    return jnp.where(eigenvalues > noise, eigenvalues, 0), eigenvectors


def _path(initial, moments, eigenvectors, powers, sums):
    def product(matrix):
        return jnp.matmul(matrix, eigenvectors, precision="highest")

    path = product(initial)[None] * powers[:, None, :] + product(moments.slope)[None] * sums[:, None, :]
    return jnp.einsum("sik,jk->sij", path, eigenvectors, precision="highest")
