"""Powers, exponentials and limits of a frozen kernel, for symmetric kernels by modes and for others without them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._numerics import machine_epsilon

EXPONENTIAL_SQUARINGS = 60
"""Enough for a scaled kernel of norm 1e18."""

Columns = Float[Array, "size columns"]
Propagated = Float[Array, "points size columns"]


class Modes(NamedTuple):
    """What a scaled kernel `A = (η/N) K` does to the residual of the start."""

    residuals: Propagated
    """`(I − A)^s r_0` or `exp(−t A) r_0`."""
    sums: Propagated
    """`Σ_{j<s} (I − A)^j r_0` or `∫_0^t exp(−τ A) r_0 dτ`; at infinity without the part that never changes."""
    never: Columns
    """The part of `r_0` that never changes."""
    at_infinity: Bool[Array, " points"]
    limit: Bool[Array, ""]
    """Whether there is a limit at infinity."""
    stable: Bool[Array, ""]
    rank: Int[Array, ""]


def symmetric_descent(scaled: Float[Array, "size size"], start: Columns, *, steps: Int[Array, " points"]) -> Modes:
    """By one eigendecomposition; `(1 − a)^s` and `(1 − (1 − a)^s) / a` without loss of digits at small `a`."""
    rates, vectors, null = _decomposed(scaled)
    count = steps.astype(scaled.dtype)[:, None]
    small = rates < 0.5
    exponent = count * jnp.log1p(-jnp.where(small, rates, 0))[None, :]
    power = jnp.where(small, 1, 1 - rates)[None, :] ** count
    remaining = jnp.where(small[None, :], jnp.exp(exponent), power)
    learned = jnp.where(small[None, :], -jnp.expm1(exponent), 1 - power)
    sums = jnp.where(null[None, :], count, learned / jnp.where(null, 1, rates)[None, :])
    stable = (rates >= 0).all() & (rates <= 2 + 4 * machine_epsilon(scaled.dtype)).all()
    never = jnp.zeros(steps.shape, bool)
    return _recombined(remaining, sums, vectors, null, start, never, rates, stable)


def symmetric_flow(scaled: Float[Array, "size size"], start: Columns, *, times: Float[Array, " points"]) -> Modes:
    """By one eigendecomposition; at infinity a mode is gone, or null and unchanged."""
    rates, vectors, null = _decomposed(scaled)
    at_infinity = jnp.isinf(times)
    finite = jnp.where(at_infinity, 0, times)[:, None]
    exponent = -finite * rates[None, :]
    gone = at_infinity[:, None] & ~null[None, :]
    safe = jnp.where(null, 1, rates)[None, :]
    sums = jnp.where(null[None, :], finite, jnp.where(gone, 1, -jnp.expm1(exponent)) / safe)
    stable = (rates >= 0).all()
    return _recombined(jnp.where(gone, 0, jnp.exp(exponent)), sums, vectors, null, start, at_infinity, rates, stable)


def general_descent(
    scaled: Float[Array, "size size"], start: Columns, *, steps: Int[Array, " points"], bits: int
) -> Modes:
    """By repeated squaring, `M^{2^b}` and `Σ_{j<2^b} M^j` for `M = I − A`: two products per binary digit of a step."""
    identity = jnp.eye(scaled.shape[0], dtype=scaled.dtype)

    def digit(carry, _):
        power, total, residuals, sums, left = carry
        odd = (left % 2 == 1)[:, None, None]
        sums = jnp.where(odd, sums + _apply(total, residuals), sums)
        residuals = jnp.where(odd, _apply(power, residuals), residuals)
        return (_product(power, power), total + _product(power, total), residuals, sums, left // 2), None

    residuals = jnp.broadcast_to(start[None], (*steps.shape, *start.shape))
    carry = (identity - scaled, identity, residuals, jnp.zeros_like(residuals), steps)
    (_, _, residuals, sums, _), _ = jax.lax.scan(digit, carry, length=bits)
    held = jax.lax.stop_gradient(scaled)
    size, spread = held.shape[0], _spread(held)
    growth = jnp.abs(1 - jnp.linalg.eigvals(held)).max()
    stable = growth <= 1 + size * machine_epsilon(scaled.dtype) * (1 + spread)
    never = jnp.zeros_like(start)
    return Modes(residuals, sums, never, jnp.zeros(steps.shape, bool), jnp.array(True), stable, _rank(held))


def general_flow(
    scaled: Float[Array, "size size"], start: Columns, *, times: Float[Array, " points"], limits: bool
) -> Modes:
    """By one exponential of `A` bordered by the residual per time, and by the group inverse at infinity."""
    size, columns = start.shape
    at_infinity = jnp.isinf(times)
    finite = jnp.where(at_infinity, 0, times)
    held, largest = jax.lax.stop_gradient((scaled, jnp.abs(start).max()))
    spread = _spread(held)
    balance = jnp.where((spread > 0) & (largest > 0), spread / jnp.where(largest > 0, largest, 1), 1)
    bordered = jnp.zeros((size + columns, size + columns), scaled.dtype)
    bordered = bordered.at[:size, :size].set(-scaled).at[:size, size:].set(balance * start)

    def at(time):
        exponential = jax.scipy.linalg.expm(time * bordered, max_squarings=EXPONENTIAL_SQUARINGS)
        return _product(exponential[:size, :size], start), exponential[:size, size:] / balance

    residuals, sums = jax.lax.map(at, finite)
    growth = -jnp.linalg.eigvals(held).real.min()
    tolerance = size * machine_epsilon(scaled.dtype) * spread
    never, limit = jnp.zeros_like(start), jnp.array(True)
    if limits:
        projector = _null_projector(scaled)
        never = _product(projector, start)
        lifted = scaled + jnp.where(spread > 0, spread, 1) * projector
        whole = jax.lax.stop_gradient(projector)
        bent = jnp.abs(_product(held, whole)).max() > _root_epsilon(scaled) * spread
        lowest = jnp.linalg.eigvals(jax.lax.stop_gradient(lifted)).real.min()
        limit = jnp.isfinite(whole).all() & ~bent & (lowest > tolerance) | (spread == 0)
        safe = jnp.where(limit, lifted, jnp.eye(size, dtype=scaled.dtype))
        residuals = jnp.where(at_infinity[:, None, None], never[None], residuals)
        sums = jnp.where(at_infinity[:, None, None], jnp.linalg.solve(safe, start - never)[None], sums)
    return Modes(residuals, sums, never, at_infinity, limit, growth <= tolerance, _rank(held))


@jax.custom_jvp
def _null_projector(matrix):
    """The spectral projector on the null space, `V (Uᵀ V)^{−1} Uᵀ` with null vectors `V` of `A` and `U` of `Aᵀ`.

    Its derivative is that along perturbations that keep the rank, `−P A' S − S A' P` with the group inverse `S`. Not
    finite, or far from a projector, where zero is a defective eigenvalue.
    """
    left, values, right = jnp.linalg.svd(matrix)
    null = values <= matrix.shape[0] * machine_epsilon(matrix.dtype) * values[0]
    left, right = jnp.where(null[None, :], left, 0), jnp.where(null[None, :], right.T, 0)
    overlap = _product(left.T, right) + jnp.diag(jnp.where(null, 0.0, 1.0).astype(matrix.dtype))
    regular = jnp.linalg.svd(overlap, compute_uv=False)[-1] > _root_epsilon(matrix)
    overlap = jnp.where(regular, overlap, jnp.eye(matrix.shape[0], dtype=matrix.dtype))
    return jnp.where(regular, _product(right, jnp.linalg.solve(overlap, left.T)), jnp.nan)


@_null_projector.defjvp
def _null_projector_jvp(primals, tangents):
    (matrix,), (change,) = primals, tangents
    projector = _null_projector(matrix)
    scale = jnp.where(_spread(matrix) > 0, _spread(matrix), 1)
    identity = jnp.eye(matrix.shape[0], dtype=matrix.dtype)
    inverse = jnp.linalg.solve(matrix + scale * projector, identity - projector)
    first = _product(projector, _product(change, inverse))
    second = _product(inverse, _product(change, projector))
    return projector, -first - second


def _decomposed(scaled):
    """Eigenvalues with those that are zero to rounding set to zero, eigenvectors, and which are zero."""
    values, vectors = jnp.linalg.eigh(scaled)
    null = jnp.abs(values) <= scaled.shape[0] * machine_epsilon(scaled.dtype) * jnp.abs(values).max()
    return jnp.where(null, 0, values), vectors, null


def _recombined(remaining, sums, vectors, null, start, at_infinity, rates, stable) -> Modes:
    coordinates = _product(vectors.T, start)
    residuals = _apply(vectors, remaining[:, :, None] * coordinates[None])
    sums = _apply(vectors, sums[:, :, None] * coordinates[None])
    never = _product(vectors, jnp.where(null[:, None], coordinates, 0))
    return Modes(residuals, sums, never, at_infinity, (rates >= 0).all(), stable, (~null).sum())


def _product(first, second):
    return jnp.matmul(first, second, precision="highest")


def _apply(matrix, columns):
    return jnp.einsum("ij,pjc->pic", matrix, columns, precision="highest")


def _spread(matrix):
    return jnp.linalg.norm(matrix, ord=1)


def _root_epsilon(matrix):
    return machine_epsilon(matrix.dtype) ** 0.5


def _rank(matrix):
    values = jnp.linalg.svd(matrix, compute_uv=False)
    return (values > matrix.shape[0] * machine_epsilon(matrix.dtype) * values[0]).sum()
