"""The gap of feedback alignment to backpropagation, measured, and as the count of constraints would have it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar
from ..feedback import MLP, AbstractBackwardRule, Backprop, alignment_constraints
from ..tangent import kernel
from ._frozen_kernel import frozen_kernel_curve


def training_gap(
    network: MLP,
    inputs: Float[Array, "examples features"],
    targets: Float[Array, "examples outputs"],
    rule: AbstractBackwardRule,
    *,
    learning_rate: Scalar,
    steps: int,
) -> Scalar:
    """Loss after so many full-batch steps of a rule, less that of backpropagation from the same start.

    The loss is `‖f − Y‖² / (2 N)`, summed over outputs.

    Raises
    ------
    ValueError
        For a negative number of steps, and for targets that do not have the shape of the outputs.
    """
    outputs = (inputs.shape[0], network.widths[-1])
    if steps < 0 or targets.shape != outputs:
        raise ValueError(
            f"training_gap takes steps of at least 0 and targets of shape {outputs}; got {steps} and {targets.shape}."
        )

    def final_loss(rule):
        def step(current, _):
            forward = current.forward(inputs)
            direction = rule.gradients(current, forward, (forward.outputs - targets) / inputs.shape[0])
            return jax.tree.map(lambda weight, change: weight - learning_rate * change, current, direction), None

        trained, _ = jax.lax.scan(step, network, length=steps)
        return jnp.sum((trained(inputs) - targets) ** 2) / (2 * inputs.shape[0])

    return final_loss(rule) - final_loss(Backprop())


@eqx.filter_jit
def constraint_count_gap(
    network: MLP,
    inputs: Float[Array, "examples features"],
    targets: Float[Array, "examples outputs"],
    *,
    learning_rate: Scalar,
    steps: int,
) -> Scalar:
    """The gap if feedback kept a share `ρ = 1 − k/P` of the speed of every mode of the tangent kernel at the start.

    `1/(2N) Σ_i c_i² [(1 − η ρ λ_i / N)^{2T} − (1 − η λ_i / N)^{2T}]` with the eigenvalues `λ` of the kernel and the
    residual's coordinates `c`, and `k` from [`jaxsolve.feedback.alignment_constraints`][]. A null model: it says too
    little in narrow networks and far too much in wide ones.
    """
    parameters = sum(weight.size for weight in network.weights)
    kept = 1 - alignment_constraints(network.widths) / parameters
    matrix, residual = kernel(network, inputs, Backprop()), (network(inputs) - targets).ravel()
    outputs = network.widths[-1]
    slow, fast = (
        frozen_kernel_curve(
            matrix, residual, learning_rate=share * outputs * learning_rate, steps=jnp.array([steps])
        ).loss[0]
        for share in (kept, 1.0)
    )
    return outputs * (slow - fast)
