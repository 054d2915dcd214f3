"""Diffusion coefficients with a few parameters, affine or log-affine in them."""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._results import RESULTS, first_failure, raise_failures
from .._types import ArrayLike, Scalar
from ._discretisation import Discretisation

_WAVES = {1: ((1,), (2,), (3,), (4,)), 2: ((1, 0), (0, 1), (1, 1), (2, 1))}


class ParametricDiffusion(eqx.Module):
    """The operators `A(z)` of `−div(a(x, z) grad u)` with parameters `z = (z_1, …, z_K)`.

    The coefficient is one of

        affine        a(x, z) = a_0(x) + Σ_k z_k ψ_k(x),
        log-affine    a(x, z) = a_0(x) exp(Σ_k z_k ψ_k(x)).

    The affine one gives `A(z) = A_0 + Σ_k z_k A_k` with fixed matrices. Both are differentiable in `z`, and `A` is
    linear in the coefficient: `∂A/∂z_k` is assembled from `∂a/∂z_k`.

    Parameters
    ----------
    discretisation
        Elements and quadrature points.
    modes
        Values of `ψ_k` at the points, one row per parameter.
    mean
        Values of `a_0` at the points, positive; 1 by default.
    link
        ``"affine"`` or ``"log-affine"``, static.

    Raises
    ------
    ValueError
        For modes and mean that do not have one value per point, values that are not finite, a mean that is not
        positive, and another link.

    >>> from jaxsolve.pde import interval_grid
    >>> family = ParametricDiffusion(interval_grid(3), jnp.full((1, 4), 0.5))
    >>> family.operator(jnp.array([1.0])).tolist()
    [[12.0, -6.0, 0.0], [-6.0, 12.0, -6.0], [0.0, -6.0, 12.0]]
    """

    discretisation: Discretisation
    modes: Float[Array, "parameters cells"]
    mean: Float[Array, " cells"]
    link: Literal["affine", "log-affine"] = eqx.field(static=True)

    def __init__(
        self,
        discretisation: Discretisation,
        modes: Float[ArrayLike, "parameters cells"],
        mean: Float[ArrayLike, " cells"] | None = None,
        *,
        link: Literal["affine", "log-affine"] = "affine",
    ):
        cells, dtype = discretisation.points.shape[0], discretisation.points.dtype
        mean = np.ones(cells) if mean is None else mean
        if modes.ndim != 2 or modes.shape[1] != cells or not len(modes) or mean.shape != (cells,):
            raise ValueError(
                f"Modes have shape (parameters, {cells}) and the mean {(cells,)}, one value for each point of the "
                f"discretisation; got {modes.shape} and {mean.shape}."
            )
        if link not in ("affine", "log-affine"):
            raise ValueError(f"link is 'affine' or 'log-affine'; got {link!r}.")
        if not (np.isfinite(modes).all() and (np.asarray(mean) > 0).all() and np.isfinite(mean).all()):
            raise ValueError("Modes are finite, and the mean coefficient is positive and finite at every point.")
        self.discretisation = discretisation
        self.modes, self.mean = jnp.asarray(modes, dtype), jnp.asarray(mean, dtype)
        self.link = link

    @property
    def mean_operator(self) -> Float[Array, "size size"]:
        """`A_0 = A(0)`."""
        return self.discretisation.assembler.assemble(self.mean)

    @property
    def mode_operators(self) -> Float[Array, "parameters size size"]:
        """`A_1, …, A_K` of an affine coefficient.

        Raises
        ------
        ValueError
            For another coefficient, whose derivatives by `z` depend on `z`: use ``tangent_operators``.
        """
        if self.link != "affine":
            raise ValueError("Only an affine coefficient has fixed mode operators. Use tangent_operators(parameters).")
        return jax.vmap(self.discretisation.assembler.assemble)(self.modes)

    def coefficient(self, parameters: Float[Array, " parameters"]) -> Float[Array, " cells"]:
        """`a(x, z)` at the points.

        Raises
        ------
        ValueError
            Where there is not one parameter per mode.
        """
        if parameters.shape != self.modes.shape[:1]:
            raise ValueError(
                f"This family has {self.modes.shape[0]} parameters; got shape {parameters.shape}. Use operators, or "
                "jax.vmap, for several tasks."
            )
        change = jnp.matmul(parameters, self.modes, precision="highest")
        return self.mean + change if self.link == "affine" else self.mean * jnp.exp(change)

    def operator(self, parameters: Float[Array, " parameters"]) -> Float[Array, "size size"]:
        """`A(z)` of one task; whether the coefficient is positive is not checked.

        Raises
        ------
        ValueError
            As ``coefficient`` does.
        """
        return self.discretisation.assembler.assemble(self.coefficient(parameters))

    def operators(
        self, parameters: Float[Array, "tasks parameters"], *, throw: bool = True
    ) -> Float[Array, "tasks size size"]:
        """`A(z)` of each task.

        Parameters
        ----------
        parameters
            `z`.
        throw
            Whether to raise where a coefficient is not positive at every point. Without it such an operator is
            assembled all the same; it need not be positive definite.

        Raises
        ------
        ValueError
            Where the shape does not fit; and for tasks whose coefficient is not positive and finite, with the least
            one.
        """
        if parameters.ndim != 2:
            raise ValueError(f"Parameters have shape (tasks, parameters); got {parameters.shape}.")
        values = jax.vmap(self.coefficient)(parameters)
        if throw:
            values = require_elliptic(values)
        return jax.vmap(self.discretisation.assembler.assemble)(values)

    def tangent_operators(
        self, parameters: Float[Array, "tasks parameters"]
    ) -> Float[Array, "tasks parameters size size"]:
        """`∂A(z)/∂z_k` of each task: the fixed `A_k` for an affine coefficient, whatever `z`.

        Raises
        ------
        ValueError
            Where the shape does not fit.

        >>> from jaxsolve.pde import interval_grid
        >>> family = ParametricDiffusion(interval_grid(1), jnp.ones((1, 2)), link="log-affine")
        >>> family.tangent_operators(jnp.log(jnp.array([[1.0], [3.0]]))).round(12).ravel().tolist()
        [4.0, 12.0]
        """
        if parameters.ndim != 2:
            raise ValueError(f"Parameters have shape (tasks, parameters); got {parameters.shape}.")
        slopes = jax.vmap(jax.jacfwd(self.coefficient))(parameters).swapaxes(1, 2)
        return jax.vmap(jax.vmap(self.discretisation.assembler.assemble))(slopes)


class EllipticityCertificate(eqx.Module):
    """How far the coefficients of a family lie from their mean, and what follows for the mean operator's inverse.

    Attributes
    ----------
    lower, upper
        `l ≤ a(x, z) / a_0(x) ≤ u` at every point and for every `z` of the box.
    step
        `2/(l + u)`.
    contraction
        `(u − l)/(u + l)`.
    """

    lower: Scalar
    upper: Scalar
    step: Scalar
    contraction: Scalar


def ellipticity_certificate(
    family: ParametricDiffusion, *, radius: float = 1.0, throw: bool = True
) -> EllipticityCertificate:
    """A contraction factor for all parameters in the box `|z_k| ≤ radius`, from the coefficient alone.

    With `s = radius · max_x Σ_k |ψ_k(x)|` over the quadrature points, divided by `a_0(x)` for an affine coefficient,
    `a(x, z)/a_0(x)` lies between `l` and `u`:

        affine: l = 1 − s, u = 1 + s;    log-affine: l = exp(−s), u = exp(s).

    Because the matrix of every point is positive semidefinite, `l A_0 ≤ A(z) ≤ u A_0` as quadratic forms, and the
    eigenvalues of `A_0^{-1} A(z)` lie in `[l, u]`, on every mesh. The iteration with `P = step · A_0^{-1}` and
    `step = 2/(l + u)` therefore contracts in the energy norm of `A(z)`,

        ‖e_L‖_{A(z)} ≤ contraction^L ‖e_0‖_{A(z)},    contraction = (u − l)/(u + l),

    which is `s` at the step 1 for an affine and `tanh s` at the step `1/cosh s` for a log-affine coefficient. Nothing
    is trained, and no eigenvalue is computed.

    Parameters
    ----------
    family
        With a positive mean.
    radius
        Half the width of the box.
    throw
        Whether to raise where a coefficient in the box is not positive. Without it ``contraction`` is at least 1 then.

    Raises
    ------
    ValueError
        For a radius that is not positive and finite, and where a coefficient of the box is not positive.

    >>> from jaxsolve.pde import interval_grid
    >>> family = ParametricDiffusion(interval_grid(3), jnp.full((2, 4), 0.25))
    >>> float(ellipticity_certificate(family).contraction)
    0.5
    """
    if not 0 < radius < np.inf:
        raise ValueError(f"A box has a radius that is positive and finite; got {radius}.")
    change = radius * jnp.abs(family.modes).sum(axis=0)
    if family.link == "affine":
        share = (change / family.mean).max()
        if throw:
            share = require_elliptic((family.mean - change)[None], share)
        lower, upper = 1 - share, 1 + share
        return EllipticityCertificate(lower, upper, jnp.ones_like(share), share)
    spread = change.max()
    return EllipticityCertificate(jnp.exp(-spread), jnp.exp(spread), 1 / jnp.cosh(spread), jnp.tanh(spread))


def require_elliptic(coefficients: Float[Array, "tasks cells"], value=None):
    """``value``, or the coefficients, where all of them are positive and finite at every point.

    Raises
    ------
    ValueError
        Where they are not, with the least one. Under a transformation, the run-time error of Equinox.

    >>> require_elliptic(jnp.array([[1.0, 2.0], [-3.0, 1.0]]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: A coefficient is not positive ... Failed: 1 of 2 tasks, at index 1. Least coefficient: -3 in task 1.
    """
    result = first_failure(
        (~jnp.isfinite(coefficients).all(axis=1), RESULTS.not_finite),
        (~(coefficients > 0).all(axis=1), RESULTS.not_elliptic),
    )
    detail = ""
    if not isinstance(coefficients, Tracer):
        least = np.nan_to_num(np.asarray(coefficients).min(axis=1), nan=-np.inf)
        detail = f" Least coefficient: {least.min():.6g} in task {least.argmin()}." if least.size else ""
    return raise_failures(coefficients if value is None else value, result, of="tasks", detail=detail)


def cosine_modes(
    discretisation: Discretisation,
    waves: Sequence[tuple[int, ...]] | None = None,
    *,
    amplitude: float = 0.2,
) -> Float[Array, "parameters cells"]:
    """`ψ_k(x) = c cos(k_1 π x_1) cos(k_2 π x_2) …`, one mode for each wave vector.

    Parameters
    ----------
    discretisation
        Its points are the `x`.
    waves
        Wave vectors, of the dimension of the points. By default 1, 2, 3, 4 in one dimension and (1, 0), (0, 1),
        (1, 1), (2, 1) in two.
    amplitude
        `c`.

    Raises
    ------
    ValueError
        For wave vectors of another dimension, and without them in more than two.
    """
    points = np.asarray(discretisation.points, float)
    dimension = points.shape[1]
    chosen = np.asarray(_WAVES.get(dimension) if waves is None else waves)
    if chosen.ndim != 2 or not chosen.size or chosen.shape[1] != dimension:
        raise ValueError(
            f"Points of dimension {dimension} take wave vectors of shape (parameters, {dimension}); got {waves}."
        )
    values = np.cos(np.pi * points[None] * chosen[:, None, :]).prod(axis=2)
    return jnp.asarray(amplitude * values, discretisation.points.dtype)


def quadrant_modes(discretisation: Discretisation, *, amplitude: float = 0.5) -> Float[Array, "parameters cells"]:
    """`ψ_k = c` on the `k`-th quadrant of the unit square, else 0; together they are the constant `c`.

    Raises
    ------
    ValueError
        Where the discretisation is not of two dimensions.
    """
    points = np.asarray(discretisation.points)
    if points.shape[1] != 2:
        raise ValueError(f"Quadrants are those of a plane domain; got points of dimension {points.shape[1]}.")
    number = 2 * (points[:, 0] >= 0.5) + (points[:, 1] >= 0.5)
    return jnp.asarray(amplitude * (number[None] == np.arange(4)[:, None]), discretisation.points.dtype)
