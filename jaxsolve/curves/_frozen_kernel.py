"""The training curve under the tangent kernel of the start."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PyTree

from .._numerics import machine_epsilon
from .._types import Scalar


class FrozenKernelCurve(NamedTuple):
    """A predicted training curve, from [`frozen_kernel_curve`][]."""

    loss: Float[Array, " points"]
    """`‖r_s‖² / (2 n)` at the steps asked for."""
    stable: Bool[Array, ""]
    """Whether `η w / n ≤ 2` for the largest eigenvalue `w` of the kernel; else the curve diverges."""


def tangent_kernel(
    residual: Callable[[PyTree], Float[Array, " outputs"]], parameters: PyTree
) -> Float[Array, "outputs outputs"]:
    """The tangent kernel `Θ = J Jᵀ` of a function of parameters, with `J` its Jacobian.

    `J` is formed by reverse-mode differentiation (outputs times parameters numbers). Nothing is divided by the number
    of outputs.

    Parameters
    ----------
    residual
        A pure function of the parameters that returns a vector.
    parameters
        A pytree of arrays of one floating dtype; all of them count.

    Raises
    ------
    ValueError
        Where ``residual`` does not return a vector, and where there are no parameters.

    >>> tangent_kernel(lambda slope: slope * jnp.array([1.0, 2.0]), jnp.array(3.0)).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    outputs = eqx.filter_eval_shape(residual, parameters)
    leaves = jax.tree.leaves(parameters)
    if getattr(outputs, "ndim", None) != 1 or not leaves:
        raise ValueError(
            f"tangent_kernel takes a function that returns a vector, of one parameter array or more; got {outputs} "
            f"from {len(leaves)} arrays. Flatten the outputs with ravel."
        )
    return _tangent_kernel(residual, parameters)


def frozen_kernel_curve(
    kernel: Float[Array, "outputs outputs"],
    residual: Float[Array, " outputs"],
    *,
    learning_rate: Scalar,
    steps: Int[Array, " points"],
) -> FrozenKernelCurve:
    """The loss curve of gradient descent under a tangent kernel that does not change.

    Descent on `‖r‖² / (2 n)` over `n` outputs, with the parameters' Jacobian frozen, has the residual and the loss

        r_s = (I − η Θ / n)^s r_0,    ‖r_s‖² / (2 n) = 1/(2 n) Σ_k c_k² (1 − η w_k / n)^{2 s},

    with the eigenvalues `w` of `Θ` and the coordinates `c` of `r_0` in its eigenvectors. One eigendecomposition gives
    the curve at any steps, without iteration and without dividing by an eigenvalue, so that a singular kernel leaves
    the plateau it should. With `jax.vmap` over learning rates the decomposition is made once.

    The kernel is exact for residuals that are affine in the parameters. For a nonlinear model the curve holds near the
    start (Jacot, Gabriel and Hongler, 2018); report [`loss_drop`][] next to its error, since any run that hardly moves
    is well predicted.

    Parameters
    ----------
    kernel
        `Θ = J Jᵀ`, symmetric, not divided by `n`.
    residual
        `r_0`, outputs minus targets.
    learning_rate
        `η`.
    steps
        Step numbers `s`, at least 0.

    Raises
    ------
    ValueError
        For shapes and dtypes that do not fit, a residual or a kernel that is not finite, and a kernel that is not
        symmetric. Under a transformation of the kernel or the residual the last two are run-time errors.

    >>> curve = frozen_kernel_curve(jnp.eye(1), jnp.ones(1), learning_rate=jnp.array(0.5), steps=jnp.arange(3))
    >>> curve.loss.tolist(), bool(curve.stable)
    ([0.5, 0.125, 0.03125], True)
    """
    if residual.ndim != 1 or not residual.size or kernel.shape != 2 * residual.shape:
        raise ValueError(
            "The kernel has shape (outputs, outputs) and the residual (outputs,), not empty; got "
            f"{kernel.shape} and {residual.shape}."
        )
    if learning_rate.shape or steps.ndim != 1 or not jnp.issubdtype(steps.dtype, jnp.integer):
        raise ValueError(
            f"learning_rate is a scalar array and steps a vector of integers; got shapes {learning_rate.shape} and "
            f"{steps.shape}, steps of {steps.dtype}. Map over learning rates with jax.vmap."
        )
    if len({kernel.dtype, residual.dtype, learning_rate.dtype}) != 1 or not jnp.issubdtype(kernel.dtype, jnp.floating):
        raise ValueError(
            f"Kernel, residual and learning rate share one floating dtype; got {kernel.dtype}, {residual.dtype} and "
            f"{learning_rate.dtype}. Cast them to float32 or float64."
        )
    residual = refuse(residual, ~jnp.isfinite(residual).all(), "The residual has entries that are NaN or infinite.")
    kernel = refuse(kernel, ~jnp.isfinite(kernel).all(), "The kernel has entries that are NaN or infinite.")
    kernel = refuse(
        kernel,
        asymmetric(kernel),
        "The kernel is not symmetric, and an eigendecomposition would silently replace it by its symmetric part. "
        "Symmetrise it where the difference is rounding; for a kernel of another rule than backpropagation take "
        "predict_descent with symmetric=False.",
    )
    return _frozen_kernel_curve(kernel, residual, learning_rate, steps)


def asymmetric(kernel: Float[Array, "size size"]) -> Bool[Array, ""]:
    """Whether a kernel differs from its transpose by more than a thousand machine epsilons of its largest entry."""
    allowed = 1e3 * machine_epsilon(kernel.dtype) * jnp.abs(kernel).max()
    return jnp.abs(kernel - kernel.T).max() > allowed


def refuse(value: Array, failed: Bool[Array, ""], message: str) -> Array:
    """``value``, or an error where ``failed`` holds: a ``ValueError`` where it is known, else at run time."""
    if isinstance(failed, Tracer):
        return eqx.error_if(value, failed, message)
    if failed:
        raise ValueError(message)
    return value


@eqx.filter_jit
def _tangent_kernel(residual, parameters):
    leaves = jax.tree.leaves(jax.jacrev(residual)(parameters))
    rows = jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in leaves], axis=1)
    return jnp.matmul(rows, rows.T, precision="highest")


@jax.jit
def _frozen_kernel_curve(kernel, residual, learning_rate, steps):
    eigenvalues, eigenvectors = jnp.linalg.eigh(kernel)
    energies = jnp.matmul(residual, eigenvectors, precision="highest") ** 2
    rates = learning_rate * eigenvalues / residual.size
    powers = ((1 - rates) ** 2)[None, :] ** steps.astype(kernel.dtype)[:, None]
    loss = jnp.matmul(powers, energies, precision="highest") / (2 * residual.size)
    return FrozenKernelCurve(loss, rates[-1] <= 2)
