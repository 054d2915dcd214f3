"""What can be wrong with values that are only known at run time, and how it is raised."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, PyTree

Value = TypeVar("Value", bound=PyTree)


class RESULTS(eqx.Enumeration):
    """Outcome of a computation, or one outcome per task. A message names the cause and the remedy."""

    successful = ""
    not_finite = (
        "An input is NaN or infinite, or a product of inputs overflows. Look for what diverged before it came here, "
        "and scale the inputs."
    )
    negative = "A loss is negative. Pass norms or squares of errors."
    not_symmetric = (
        "An operator is not symmetric and defines no energy norm. Symmetrise it where the difference is rounding; else "
        "use a certificate in the Euclidean norm."
    )
    not_positive_definite = (
        "An operator has an eigenvalue that is not positive, or not told from zero in its dtype, and defines no energy "
        "norm. Remove its kernel or use float64; else use a certificate in the Euclidean norm."
    )
    no_contraction = (
        "The rate of the iteration is not below 1, so that no contraction can be claimed. Take a smaller step or "
        "another preconditioner for these tasks."
    )
    draw_not_finite = (
        "A draw is NaN or infinite. Look at draw i alone, function(key=jax.random.fold_in(key, i)); with throw=False "
        "the statistics are those of the finite draws."
    )
    negative_time = (
        "A time or a number of steps is negative, NaN, infinite where a solver has to reach it, or smaller than the "
        "one before. Pass times from the start on, in increasing order."
    )
    not_integrated = (
        "The solver of a differential equation stopped before its last time: it met its limit on steps, or its "
        "implicit stages did not converge. Raise max_steps or the tolerance, or look for a state that escapes in "
        "finite time."
    )
    not_positive = (
        "A gain, an eigenvalue or a number of degrees of freedom is not positive. The formula divides by it or takes "
        "its square root; pass positive values."
    )
    asymmetric_kernel = (
        "The kernel is not symmetric, and an eigendecomposition would silently replace it by its symmetric part. "
        "Symmetrise it where the difference is rounding; for a kernel of another rule than backpropagation pass "
        "symmetric=False."
    )
    false_symmetry = (
        "An operator is tagged symmetric and is not: products with it do not agree with those of its transpose. Take "
        "its symmetric part (K + K^T)/2 and call it so."
    )
    outside_domain = (
        "A function of a spectrum is NaN or infinite at a node of the quadrature: eigenvalues lie where it is not "
        "defined, such as at or below zero for a logarithm. Add a ridge, or use float64 where eigenvalues are zero up "
        "to rounding."
    )
    no_limit = (
        "Training has no limit: an eigenvalue of the kernel is negative, imaginary or a defective zero, or a test "
        "output depends on what is never learned. Ask for finite times, and check that both kernels belong together."
    )
    diverged = (
        "The prediction overflows, because a mode grows. Lower the learning rate, ask for fewer steps, or pass "
        "throw=False."
    )
    no_speed = (
        "All gradients of backpropagation are zero, or too small to be squared, so that no share of its speed is "
        "defined. The residual vanishes or no gradient reaches the weights: choose data or weights at which the loss "
        "has a slope."
    )
    not_elliptic = (
        "A coefficient is not positive everywhere, and its operator need not be positive definite. Bring the "
        "parameters back into the box where the family is elliptic."
    )
    rank_deficient = (
        "The pairs of a prompt do not determine all coefficients: the matrix of the normal equations is singular to "
        "rounding. Add pairs that differ, or a ridge."
    )
    not_converged = (
        "The last pass over a prompt changes its coefficients by more than half of what the pass before changed, and "
        "by more than rounding. Take more passes; where that does not help, the noise is too large for the "
        "linearisation: add pairs."
    )


def first_failure(*failures: tuple[Bool[Array, " entries"], RESULTS]) -> RESULTS:
    """One result per entry: that of the first failure in the list which holds there, else success."""

    def outcome(*holds):
        result = RESULTS.successful
        for held, (_, failure) in zip(reversed(holds), reversed(failures), strict=True):
            result = RESULTS.where(held, failure, result)
        return result

    return jax.vmap(outcome)(*(holds for holds, _ in failures))


def raise_failures(value: Value, result: RESULTS, *, of: str, detail: str = "") -> Value:
    """``value``, where every entry of ``result`` is successful; else an error.

    Where the results are known, the error is a ``ValueError`` that counts the entries which failed and lists the
    first of them. Under a transformation it is the run-time error of Equinox, with the message alone.

    Parameters
    ----------
    value
        A pytree with at least one array.
    result
        An array of results, as from [`first_failure`][].
    of
        What its entries are.
    detail
        Appended to the message, where the results are known.

    Raises
    ------
    ValueError
        Where a known result is not successful.

    >>> raise_failures(1.0, first_failure((jnp.array([False, True]), RESULTS.negative)), of="losses")
    Traceback (most recent call last):
    ...
    ValueError: A loss is negative. Pass norms or squares of errors. Failed: 1 of 2 losses, at index 1.
    """
    failed = jnp.asarray(result != RESULTS.successful)
    if isinstance(failed, Tracer):
        return result.error_if(value, failed)
    which = np.flatnonzero(failed)
    if not which.size:
        return value
    first = jax.tree.map(lambda codes: codes[which[0]], result)
    listed = ", ".join(map(str, which[:5])) + (", ..." if which.size > 5 else "")
    message = RESULTS[first]  # pyright: ignore[reportInvalidTypeArguments]
    raise ValueError(f"{message} Failed: {which.size} of {failed.size} {of}, at index {listed}.{detail}")
