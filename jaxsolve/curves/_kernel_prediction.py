"""Training and test predictions under a tangent kernel that does not change, in steps and in continuous time."""

import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from .._numerics import machine_epsilon
from .._results import RESULTS, first_failure, raise_failures
from .._types import Scalar
from ._frozen_kernel import asymmetric, refuse
from ._kernel_modes import general_descent, general_flow, symmetric_descent, symmetric_flow


class KernelPrediction(eqx.Module):
    """What linearised training does, from [`predict_descent`][] or [`predict_gradient_flow`][].

    Attributes
    ----------
    residual
        `r`, outputs minus targets at the training points, one row per step or time.
    test_outputs
        Outputs at the test points; ``None`` without a cross kernel.
    loss
        `‖r‖² / (2 N)`, with `N` the ``loss_divisor``.
    rank
        Numerical rank of the kernel: how many eigenvalues (for a kernel that is not symmetric, singular values) exceed
        `size · ε` times the largest.
    stable
        Whether no mode grows: in steps `|1 − η λ / N| ≤ 1`, in time `Re λ ≥ 0`, for all eigenvalues `λ`. A mode that
        is zero to rounding counts as stable.
    result
        One result per step or time.
    """

    residual: Float[Array, "points *outputs"]
    test_outputs: Float[Array, "points *tests"] | None
    loss: Float[Array, " points"]
    rank: Int[Array, ""]
    stable: Bool[Array, ""]
    result: RESULTS

    @property
    def singular(self) -> Bool[Array, ""]:
        """Whether the kernel has no full rank, so that a part of the residual may never be learned."""
        return self.rank < self.residual.shape[1]


def predict_descent(
    kernel: Float[Array, "size size"],
    residual: Float[Array, "size *columns"],
    *,
    learning_rate: Scalar,
    loss_divisor: float | int,
    steps: Int[Array, " points"],
    cross_kernel: Float[Array, "tests size"] | None = None,
    test_outputs: Float[Array, "tests *columns"] | None = None,
    symmetric: bool = True,
    throw: bool = True,
) -> KernelPrediction:
    """Outputs and loss of gradient descent with a frozen tangent kernel, after any numbers of steps.

    Descent on `‖f − Y‖² / (2 N)` with the learning rate `η` has, for a model that is affine in its parameters, the
    residual `r = f − Y` and the outputs at test points

        r_{s+1} = (I − (η/N) K) r_s,    f*_{s+1} = f*_s − (η/N) K* r_s,

    with the kernel `K = J J̃ᵀ` of the training points and the cross kernel `K* = J* J̃ᵀ` of test and training points.
    Nothing is divided by `N` in either. A symmetric kernel is decomposed once, and modes of all numbers of steps are
    read off it. A kernel that is not symmetric, as of feedback alignment, is raised to its powers by repeated
    squaring; its symmetric part would give another curve.

    No eigenvalue is divided by without its power series, and no jitter is added. An eigenvalue that is zero to
    rounding is taken as zero: its mode stays where it is, and ``rank`` tells how many there are. After many steps the
    outputs tend to those of [`predict_gradient_flow`][] at infinity wherever ``stable`` holds.

    Steps, learning rate and residual may be differentiated, mapped and traced. For derivatives with respect to a
    kernel with equal eigenvalues take ``symmetric=False``, since those of an eigendecomposition are infinite there.

    Parameters
    ----------
    kernel
        `K`.
    residual
        `r_0`, as a vector or with columns that share the kernel: outputs of a network of infinite width.
    learning_rate
        `η`.
    loss_divisor
        `N`, positive: the number of examples for the loss of a network here, that of all outputs for
        [`frozen_kernel_curve`][] and for a mean over all entries, 1 for a sum.
    steps
        Numbers of steps, at least 0.
    cross_kernel, test_outputs
        `K*`, and the outputs `f*_0` of the start at the test points; both or neither.
    symmetric
        Static: whether the kernel is symmetric.
    throw
        Whether to raise for a kernel that is not finite, one that is not symmetric although ``symmetric`` says so,
        and values that overflow; otherwise ``result`` tells. A learning rate beyond the stable range alone is no
        failure: ``stable`` tells.

    Raises
    ------
    ValueError
        For shapes and dtypes that do not fit, negative steps, and what ``throw`` says.

    >>> rate, steps = jnp.array(0.5), jnp.arange(3)
    >>> run = predict_descent(jnp.eye(1), jnp.ones(1), learning_rate=rate, loss_divisor=1, steps=steps)
    >>> run.loss.tolist(), bool(run.stable), bool(run.singular)
    ([0.5, 0.125, 0.03125], True, False)
    """
    _check(kernel, residual, learning_rate, loss_divisor, cross_kernel, test_outputs)
    if steps.ndim != 1 or not jnp.issubdtype(steps.dtype, jnp.integer):
        raise ValueError(f"steps is a vector of integers; got shape {steps.shape} of {steps.dtype}.")
    steps = refuse(steps, (steps < 0).any(), "steps counts updates and is at least 0; got a negative number.")
    bits = jnp.iinfo(steps.dtype).bits - 1 if isinstance(steps, Tracer) else int(steps.max(initial=0)).bit_length()
    if symmetric:
        modes = eqx.Partial(symmetric_descent, steps=steps)
    else:
        modes = eqx.Partial(general_descent, steps=steps, bits=bits)
    return _predict(modes, kernel, residual, learning_rate, loss_divisor, cross_kernel, test_outputs, symmetric, throw)


def predict_gradient_flow(
    kernel: Float[Array, "size size"],
    residual: Float[Array, "size *columns"],
    *,
    learning_rate: Scalar,
    loss_divisor: float | int,
    times: Float[Array, " points"],
    cross_kernel: Float[Array, "tests size"] | None = None,
    test_outputs: Float[Array, "tests *columns"] | None = None,
    symmetric: bool = True,
    throw: bool = True,
) -> KernelPrediction:
    """Outputs and loss of gradient flow with a frozen tangent kernel, at any times, infinity included.

    Flow on `‖f − Y‖² / (2 N)` in units of time in which a step of rate `η` takes the time 1:

        dr/dt = −(η/N) K r,             r_t = exp(−t (η/N) K) r_0,
        df*/dt = −(η/N) K* r,           f*_t = f*_0 − (η/N) K* ∫_0^t r_τ dτ.

    Descent has another curve at a finite learning rate, [`predict_descent`][], which describes kernels and loss. A
    symmetric kernel is decomposed once; for another one exponentials are taken at each time, by scaling and squaring.

    At infinity the part of `r_0` in the range of `K` is gone and the part in its null space remains. The outputs at
    test points are those of the solution of least norm among the parameters' displacements that training reaches,

        f*_∞ = f*_0 − K* K⁺ r_0,

    with the pseudo-inverse, for a kernel that is not symmetric the group inverse. There is no limit where an
    eigenvalue has a negative real part or is imaginary, where zero is a defective eigenvalue, and where a test output
    depends on a mode that is never learned (then it grows without end); ``result`` is then ``no_limit``.

    Parameters
    ----------
    kernel, residual, learning_rate, loss_divisor, cross_kernel, test_outputs, symmetric
        As in [`predict_descent`][].
    times
        At least 0; `inf` is the limit.
    throw
        As in [`predict_descent`][], and for a limit that does not exist.

    Raises
    ------
    ValueError
        For shapes and dtypes that do not fit, times that are negative or NaN, and what ``throw`` says.

    >>> times = jnp.array([0.0, jnp.inf])
    >>> kernel = jnp.array([[1.0, 1.0], [1.0, 1.0]])
    >>> flow = predict_gradient_flow(
    ...     kernel, jnp.array([1.0, 3.0]), learning_rate=jnp.array(0.1), loss_divisor=2, times=times
    ... )
    >>> flow.residual.round(12).tolist(), int(flow.rank)
    ([[1.0, 3.0], [-1.0, 1.0]], 1)
    """
    _check(kernel, residual, learning_rate, loss_divisor, cross_kernel, test_outputs)
    if times.ndim != 1 or times.dtype != kernel.dtype:
        raise ValueError(
            f"times is a vector of the dtype of the kernel, {kernel.dtype}; got shape {times.shape} of {times.dtype}."
        )
    times = refuse(times, ~(times >= 0).all(), "times are at least 0 (inf is the limit); got one negative or NaN.")
    if symmetric:
        modes = eqx.Partial(symmetric_flow, times=times)
    else:
        limits = isinstance(times, Tracer) or bool(jnp.isinf(times).any())
        modes = eqx.Partial(general_flow, times=times, limits=limits)
    return _predict(modes, kernel, residual, learning_rate, loss_divisor, cross_kernel, test_outputs, symmetric, throw)


def _check(kernel, residual, learning_rate, loss_divisor, cross_kernel, test_outputs):
    size = residual.shape[0] if residual.ndim else 0
    if residual.ndim not in (1, 2) or not residual.size or kernel.shape != (size, size):
        raise ValueError(
            "The kernel has shape (size, size) and the residual (size,) or (size, columns), not empty; got "
            f"{kernel.shape} and {residual.shape}."
        )
    if learning_rate.shape:
        raise ValueError(f"learning_rate is a scalar array; got shape {learning_rate.shape}. Map with jax.vmap.")
    if not loss_divisor > 0:
        raise ValueError(f"loss_divisor is positive: the loss is ‖r‖² / (2 loss_divisor); got {loss_divisor}.")
    if (cross_kernel is None) != (test_outputs is None):
        raise ValueError("cross_kernel and test_outputs come together: give both, or neither.")
    arrays = [kernel, residual, learning_rate]
    if cross_kernel is not None and test_outputs is not None:
        expected = (cross_kernel.shape[0], *residual.shape[1:])
        if cross_kernel.ndim != 2 or cross_kernel.shape[1] != size or test_outputs.shape != expected:
            raise ValueError(
                f"cross_kernel has shape (tests, {size}) and test_outputs (tests, ...) with the columns of the "
                f"residual; got {cross_kernel.shape} and {test_outputs.shape}."
            )
        arrays += [cross_kernel, test_outputs]
    dtypes = {array.dtype for array in arrays}
    if len(dtypes) != 1 or not jnp.issubdtype(kernel.dtype, jnp.floating):
        raise ValueError(
            f"Kernels, residual, learning rate and outputs share one floating dtype; got {sorted(map(str, dtypes))}. "
            "Cast them to float32 or float64."
        )


@eqx.filter_jit
def _solve(modes, kernel, residual, learning_rate, loss_divisor, cross_kernel, test_outputs, symmetric):
    columns = residual.reshape(residual.shape[0], -1)
    arrays = [array for array in (kernel, columns, learning_rate, cross_kernel, test_outputs) if array is not None]
    finite = jnp.stack([jnp.isfinite(array).all() for array in arrays]).all()
    skewed = asymmetric(kernel) if symmetric else jnp.array(False)
    usable = finite & ~skewed
    safe = jnp.where(usable, kernel, 0)
    scaled = jnp.where(usable, learning_rate, 0) / loss_divisor * safe
    found = modes(scaled, jnp.where(usable, columns, 0))
    residuals, limit = found.residuals, found.limit
    overflow = ~jnp.isfinite(residuals).all(axis=(1, 2))
    tests = None
    if cross_kernel is not None:
        cross = jnp.where(usable, learning_rate * cross_kernel / loss_divisor, 0)
        change = jnp.einsum("ts,psc->ptc", cross, found.sums, precision="highest")
        tests = test_outputs.reshape(1, test_outputs.shape[0], -1) - change
        overflow |= ~jnp.isfinite(tests).all(axis=(1, 2))
        growth = jnp.abs(jnp.matmul(cross, found.never, precision="highest")).max(initial=0)
        limit &= growth <= machine_epsilon(kernel.dtype) ** 0.5 * jnp.abs(cross).max(initial=0) * jnp.abs(columns).max()
    no_limit = found.at_infinity & ~limit
    points = residuals.shape[0]
    result = first_failure(
        (jnp.full(points, ~finite), RESULTS.not_finite),
        (jnp.full(points, skewed), RESULTS.asymmetric_kernel),
        (no_limit, RESULTS.no_limit),
        (overflow, RESULTS.diverged),
    )
    broken = (~usable | no_limit)[:, None, None]
    residuals = jnp.where(broken, jnp.nan, residuals)
    loss = (residuals**2).sum(axis=(1, 2)) / (2 * loss_divisor)
    if tests is not None:
        tests = jnp.where(broken, jnp.nan, tests).reshape(points, *test_outputs.shape)
    residuals = residuals.reshape(points, *residual.shape)
    return KernelPrediction(residuals, tests, loss, found.rank, found.stable & usable, result)


def _predict(modes, kernel, residual, learning_rate, loss_divisor, cross_kernel, test_outputs, symmetric, throw):
    divisor = jnp.asarray(loss_divisor, kernel.dtype)
    found = _solve(modes, kernel, residual, learning_rate, divisor, cross_kernel, test_outputs, symmetric)
    return raise_failures(found, found.result, of="points") if throw else found
