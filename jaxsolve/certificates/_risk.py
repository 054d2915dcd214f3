"""Measured errors: their risk, and how many of them break a bound."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from .._arguments import check_dtypes
from .._numerics import machine_epsilon, violated
from .._types import ArrayLike


def depth_risk(
    iterates: Float[Array, "iterates tasks size"], solutions: Float[Array, "tasks size"]
) -> Float[Array, " iterates"]:
    """The risk `1/(N K) Σ_i ‖z_{i,l} − z*_i‖²` at every depth `l`, over `N` tasks of size `K`.

    A mean over tasks and unknowns without the factor 1/2: at the last depth it is twice the training loss of the
    solver. A task that diverges is not averaged away: the risk is infinite or NaN where an iterate is.

    Parameters
    ----------
    iterates
        `z_0, …, z_L`, as from the trajectory of the solver.
    solutions
        `z*`.

    Raises
    ------
    ValueError
        For shapes that do not fit and dtypes that are not one floating dtype.

    >>> import jax.numpy as jnp
    >>> depth_risk(jnp.array([[[1.0, 1.0]], [[0.0, 1.0]]]), jnp.zeros((1, 2))).tolist()
    [1.0, 0.5]
    """
    if iterates.ndim != 3 or iterates.shape[1:] != solutions.shape or not iterates.size:
        raise ValueError(
            "depth_risk takes iterates (iterates, tasks, size) and solutions (tasks, size), not empty; got "
            f"{iterates.shape} and {solutions.shape}."
        )
    check_dtypes(iterates=iterates, solutions=solutions)
    return _risk(iterates, solutions)


@jax.jit
def _risk(iterates, solutions):
    return jnp.mean((iterates - solutions[None]) ** 2, axis=(1, 2))


def count_violations(
    errors: Float[ArrayLike, "iterates tasks"],
    bounds: Float[ArrayLike, "iterates tasks"],
    *,
    relative: float | None = None,
    absolute: float | Float[ArrayLike, " tasks"] | None = None,
) -> Int[Array, ""]:
    """How many inequalities `error ≤ bound (1 + relative) + absolute` do not hold.

    A NaN on either side is a violation, and so is an infinite error above a finite bound. An infinite bound is
    vacuous, not violated.

    A bound tends to zero with depth, whereas a computed error stalls: with `b = H z*` formed in floating point and
    machine epsilon `ε`, at about `ε ‖P‖ ‖H‖ ‖z*‖`. Where that is more than the default, pass it as ``absolute``.

    Parameters
    ----------
    errors
        Norms of errors, in the norm of the bounds. The first row is depth 0.
    bounds
        As in a certificate.
    relative
        By default 1e-10, or `1024 ε` where the dtype does not resolve that (1.2e-4 in float32).
    absolute
        A number, or one per task. By default 1e-13 times the errors in the first row, or `256 ε` times (3.1e-5 in
        float32); nothing where that row is not finite.

    Raises
    ------
    ValueError
        For shapes that differ or do not have two axes, dtypes that are not one floating dtype, and tolerances that
        are negative or not finite.

    >>> import jax.numpy as jnp
    >>> int(count_violations(jnp.array([[1.0], [jnp.nan], [0.5]]), jnp.array([[1.0], [jnp.inf], [0.4]])))
    2
    """
    errors, bounds = jnp.asarray(errors), jnp.asarray(bounds)
    if errors.ndim != 2 or errors.shape != bounds.shape or not errors.size:
        raise ValueError(
            f"Errors and bounds have one shape (iterates, tasks), not empty; got {errors.shape} and {bounds.shape}. "
            "Give one task its own axis: the first row sets the scale of each task."
        )
    check_dtypes(errors=errors, bounds=bounds)
    epsilon = machine_epsilon(errors.dtype)
    if relative is None:
        relative = max(1e-10, 1024 * epsilon)
    if not 0 <= relative < 1:
        raise ValueError(f"relative lies in [0, 1); got {relative}.")
    if absolute is None:
        return _count(errors, bounds, relative, max(1e-13, 256 * epsilon), jnp.zeros((), errors.dtype))
    absolute = jnp.asarray(absolute, errors.dtype)
    if absolute.shape not in ((), errors.shape[1:]):
        raise ValueError(f"absolute is a number or has shape {errors.shape[1:]}; got {absolute.shape}.")
    if not isinstance(absolute, Tracer) and not ((np.asarray(absolute) >= 0) & np.isfinite(absolute)).all():
        raise ValueError(f"absolute is at least 0 and finite; got {absolute}.")
    return _count(errors, bounds, relative, 0.0, absolute)


@partial(jax.jit, static_argnums=2)
def _count(errors, bounds, relative, share, absolute):
    scale = jnp.where(jnp.isfinite(errors[0]), jnp.abs(errors[0]), 0)
    allowed = share * scale + jnp.broadcast_to(absolute, scale.shape)
    return jnp.sum(violated(errors, bounds, relative=relative, absolute=allowed[None]))
