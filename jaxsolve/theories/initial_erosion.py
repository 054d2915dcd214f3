"""The mean initial erosion is the share of the hidden layers in the speed of backpropagation."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..datasets import digits, one_hot
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..feedback import (
    MLP,
    Backprop,
    DirectFeedbackAlignment,
    FeedbackAlignment,
    initial_erosion,
    initial_weights,
)

INSTANCE_SEED = 600

DEPTHS = tuple((32,) * depth for depth in range(1, 7))
"""Hidden layers of the networks of the full configuration."""


class InitialErosionMean(AbstractTheory):
    """`E_B[e_0] = 1 − ‖g_L‖² / Σ_l ‖g_l‖²`: on average the hidden layers do nothing in the first step.

    The prediction takes the squared gradients of one backward pass. The measurement draws the feedback, runs the
    backward pass of the rule, and takes the inner product of its whole update with the derivative of the loss, which
    comes from automatic differentiation.

    Attributes
    ----------
    inputs, targets
        `N(0, 1)` features and labels, or digits and their labels.
    weights
        Of the networks, by grid point; the first axis runs over initialisations. Variance `2 / n_{l−1}`, in the last
        layer `1 / n_{L−1}`.
    output_factor
        What the prediction multiplies the output share with: 1.
    points
        The grid: numbers of hidden layers, or widths where all networks are equally deep.
    """

    inputs: Float[Array, "examples features"]
    targets: Float[Array, "examples outputs"]
    weights: tuple[tuple[Float[Array, "initialisations _ _"], ...], ...]
    output_factor: Scalar
    points: tuple[int, ...] = eqx.field(static=True)
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result E, theorem 3}
}"""
    statement: ClassVar[str] = (
        "Over independent feedback matrices of mean zero the erosion 1 - sum_l <g_l^BP, g_l> / sum_l ||g_l^BP||^2 of "
        "feedback alignment and of direct feedback alignment has the mean 1 - ||g_L||^2 / sum_l ||g_l||^2."
    )
    observables: ClassVar[tuple[str, ...]] = ("feedback_alignment", "direct_feedback_alignment")
    assumptions: ClassVar[tuple[str, ...]] = (
        "the feedback does not depend on the weights and the residual",
        "the feedback matrices of a network are independent of each other; mean zero alone is not enough",
        "the last layer has the exact gradient",
    )
    breaks_when: ClassVar[str] = (
        "All matrices of a chain are tied, as in B_2 = B_1^T: their product has a mean that is not zero. Or training "
        "has aligned the weights with the feedback."
    )
    effect: ClassVar[float] = 0.05

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        hidden: tuple[tuple[int, ...], ...] = (DEPTHS[0], DEPTHS[2]),
        data: str = "gaussian",
        initialisations: int = 1,
        examples: int = 64,
        replicates: int = 512,
        instance_seed: int = INSTANCE_SEED,
    ) -> "InitialErosionMean":
        """One initialisation for 1 and 3 hidden layers, 64 examples of 16 features and 4 random labels."""
        generator = np.random.default_rng(instance_seed)

        def normal(*shape):
            return jnp.asarray(generator.standard_normal(shape), dtype)

        if data == "digits":
            inputs, labels = digits(examples, dtype=dtype)
            targets = one_hot(labels, dtype=dtype)
        else:
            inputs, targets = normal(examples, 16), normal(examples, 4)
        ends, leading = (inputs.shape[1], targets.shape[1]), (initialisations,)
        weights = [
            initial_weights((ends[0], *layers, ends[1]), generator, leading=leading, dtype=dtype) for layers in hidden
        ]
        depths = [len(widths) for widths in hidden]
        return cls(
            inputs=inputs,
            targets=targets,
            weights=tuple(weights),
            output_factor=jnp.ones((), dtype),
            points=tuple(widths[0] for widths in hidden) if len({*depths}) == 1 else tuple(depths),
            replicates=replicates,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        hidden: tuple[tuple[int, ...], ...] = DEPTHS,
        data: str = "gaussian",
        initialisations: int = 6,
        examples: int | None = None,
        **options,
    ) -> "InitialErosionMean":
        """Six initialisations for each depth from 1 to 6, 128 examples or 256 digits; the other options are those of
        ``quick``.
        """
        examples = examples or (256 if data == "digits" else 128)
        options = {"data": data, **options}
        return cls.quick(dtype=dtype, hidden=hidden, initialisations=initialisations, examples=examples, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of hidden layers, or widths."""
        return jnp.asarray(self.points, self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The hidden shares: one backward pass per initialisation."""
        shares = jnp.stack([_output_shares(weights, self.inputs, self.targets) for weights in self.weights])
        curve = Curve(grid, 1 - self.output_factor * shares)
        return dict.fromkeys(self.observables, curve)

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Erosions under one draw of feedback for each network."""
        rows = []
        for index, weights in enumerate(self.weights):
            keys = jax.random.split(jax.random.fold_in(key, index), weights[0].shape[0])
            rows.append(jax.vmap(_measured, in_axes=(None, None, 0, 0))(self.inputs, self.targets, weights, keys))
        columns = zip(self.observables, zip(*rows, strict=True), strict=True)
        return {name: Curve(grid, jnp.stack(column)) for name, column in columns}

    def counterfeit(self) -> "InitialErosionMean":
        """An output share that is a tenth too large."""
        return eqx.tree_at(lambda theory: theory.output_factor, self, 1.1 * self.output_factor)


@eqx.filter_jit
def _output_shares(weights: tuple[Array, ...], inputs: Array, targets: Array) -> Float[Array, " initialisations"]:
    def output_share(weights):
        network = MLP(weights)
        return initial_erosion(network, inputs, network(inputs) - targets, Backprop(), throw=False).output_share

    return jax.vmap(output_share)(weights)


def _measured(inputs: Array, targets: Array, weights: tuple[Array, ...], key: Key) -> tuple[Scalar, ...]:
    """Erosions of both rules: inner products of their updates with the derivative of the loss."""
    network = MLP(weights)
    forward = network.forward(inputs)

    def loss(weights):
        return jnp.mean(jnp.sum((MLP(weights)(inputs) - targets) ** 2, axis=1)) / 2

    def product(first, second):
        return sum(jnp.sum(one * other) for one, other in zip(first, second, strict=True))

    gradient = jax.grad(loss)(weights)
    found = []
    for rule, one in zip((FeedbackAlignment, DirectFeedbackAlignment), jax.random.split(key), strict=True):
        residual = (forward.outputs - targets) / targets.shape[0]
        update = rule.sample(network, key=one).gradients(network, forward, residual)
        found.append(1 - product(gradient, update.weights) / product(gradient, gradient))
    return tuple(found)
