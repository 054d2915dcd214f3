"""The gap of feedback alignment to backpropagation, measured, and as the count of constraints would have it."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..feedback import MLP, AbstractBackwardRule, Backprop, FeedbackAlignment, alignment_constraints
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


class GapOverWidths(eqx.Module):
    """Networks with two hidden layers of one width and no biases, for several widths, before training on random labels.

    Made by [`GapOverWidths.drawn`][]; the networks are fields, the feedback is drawn by each call of ``trained``.

    Attributes
    ----------
    networks
        At the start, one for each width.
    inputs, targets
        Of the examples, `N(0, 1)`.
    learning_rate, steps
        Of the full-batch runs.
    """

    networks: tuple[MLP, ...]
    inputs: Float[Array, "examples features"]
    targets: Float[Array, "examples outputs"]
    learning_rate: Scalar
    steps: int = eqx.field(static=True)

    @classmethod
    def drawn(
        cls,
        widths: Sequence[int],
        *,
        inputs: int,
        outputs: int,
        examples: int,
        learning_rate: float,
        steps: int,
        seed: int,
        dtype: jax.typing.DTypeLike = float,
    ) -> "GapOverWidths":
        """Gaussian examples and labels, and networks of [`MLP.initialise`][jaxsolve.feedback.MLP.initialise].

        Raises
        ------
        ValueError
            For no width or no example, and as ``MLP.initialise`` does.
        """
        if not widths or examples < 1:
            raise ValueError(f"There is at least one width and one example; got widths={widths}, examples={examples}.")
        random = np.random.default_rng(seed)
        keys = jax.random.split(jax.random.key(seed), len(widths))
        return cls(
            networks=tuple(
                MLP.initialise((inputs, width, width, outputs), dtype=dtype, key=key)
                for width, key in zip(widths, keys, strict=True)
            ),
            inputs=jnp.asarray(random.standard_normal((examples, inputs)), dtype),
            targets=jnp.asarray(random.standard_normal((examples, outputs)), dtype),
            learning_rate=jnp.asarray(learning_rate, dtype),
            steps=steps,
        )

    @property
    def widths(self) -> Float[Array, " widths"]:
        """Of the hidden layers."""
        return jnp.asarray([network.widths[1] for network in self.networks], self.inputs.dtype)

    def constraint_count(self) -> Float[Array, " widths"]:
        """[`constraint_count_gap`][] of each network."""
        options = {"learning_rate": self.learning_rate, "steps": self.steps}
        gaps = [constraint_count_gap(network, self.inputs, self.targets, **options) for network in self.networks]
        return jnp.stack(gaps)

    def trained(self, key: Key) -> Float[Array, " widths"]:
        """[`training_gap`][] of each network under one draw of feedback alignment."""
        gaps = [
            training_gap(
                network,
                self.inputs,
                self.targets,
                FeedbackAlignment.sample(network, key=jax.random.fold_in(key, number)),
                learning_rate=self.learning_rate,
                steps=self.steps,
            )
            for number, network in enumerate(self.networks)
        ]
        return jnp.stack(gaps)
