"""Gradient flows and other differential equations, stiff or not, with a reported outcome."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._numerics import machine_epsilon
from .._results import RESULTS, first_failure, raise_failures


class Flow(NamedTuple):
    """A solution of a differential equation, from [`integrate`][]."""

    states: Float[Array, "points *shape"]
    """The state at the times asked for; infinite after a failure."""
    result: RESULTS
    """Whether the last time was reached; one entry."""


def integrate(
    vector_field: Callable[[Array, Array], Array],
    initial: Float[Array, "*shape"],
    *,
    times: Float[Array, " points"],
    tolerance: float | None = None,
    max_steps: int = 4096,
    throw: bool = True,
) -> Flow:
    """Solve `dy/dt = f(t, y)` from time 0 by an implicit method of order 5 with adaptive steps (Diffrax, ``Kvaerno5``).

    Rates that differ by many orders of magnitude cost no more steps. The implicit stages form the Jacobian of `f`, so
    the state should have at most some hundred entries.

    Parameters
    ----------
    vector_field
        `f`, a pure function of time and state.
    initial
        The state at time 0.
    times
        Increasing, the first one not negative.
    tolerance
        Relative and absolute tolerance of the step-size control; by default 1e-10 in double and 1e-5 in single
        precision.
    max_steps
        Limit on steps, static.
    throw
        Whether to raise where the solver fails.

    Raises
    ------
    ValueError
        For times that are negative or do not increase, and where the solver fails.

    >>> flow = integrate(lambda time, state: -state, jnp.ones(1), times=jnp.array([0.0, 1.0]))
    >>> flow.states.round(4).tolist()
    [[1.0], [0.3679]]
    """
    wrong = jnp.diff(times, prepend=jnp.zeros(1, times.dtype)) < 0
    times = raise_failures(times, first_failure((wrong | ~jnp.isfinite(times), RESULTS.negative_time)), of="times")
    if tolerance is None:
        tolerance = 1e-10 if machine_epsilon(initial.dtype) < 1e-12 else 1e-5
    flow = _integrated(vector_field, initial, times, tolerance, max_steps)
    return raise_failures(flow, flow.result, of="solutions") if throw else flow


@eqx.filter_jit
def _integrated(vector_field, initial, times, tolerance, max_steps):
    import diffrax

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda time, state, _: vector_field(time, state)),
        diffrax.Kvaerno5(),
        jnp.zeros((), times.dtype),
        jnp.maximum(times[-1], jnp.finfo(times.dtype).tiny),
        None,
        initial,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
        max_steps=max_steps,
        throw=False,
    )
    states = solution.ys
    assert states is not None
    reached = solution.result == diffrax.RESULTS.successful
    finite = jnp.isfinite(states).all()
    result = first_failure(
        (jnp.atleast_1d(~reached), RESULTS.not_integrated), (jnp.atleast_1d(~finite), RESULTS.not_finite)
    )
    return Flow(states, result)
