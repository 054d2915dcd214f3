"""Averaged over the feedback, the tangent kernel of feedback alignment is that of the last layer."""

from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..feedback import MLP, Backprop, DirectFeedbackAlignment, FeedbackAlignment, initial_weights
from ..tangent import kernel, output_kernel

INSTANCE_SEED = 608


class MeanFeedbackKernel(AbstractTheory):
    """`E_B[K] = K_out`, entry by entry, for feedback alignment and direct feedback alignment.

    Every hidden layer of `J̃` is multilinear in independent matrices of mean zero, so its mean vanishes, and the last
    layer is the same in all rules. The measurement multiplies the Jacobian of the network, by automatic
    differentiation, with the updates of the rule for one output of one example each. It also takes the mean of the
    hidden part of those updates, relative to the largest one of backpropagation, which must be zero.

    The counterfeit says that feedback alignment slows all directions alike: `E_B[K] = ρ K_BP`, with `ρ` the ratio of
    the traces.

    Attributes
    ----------
    inputs
        `N(0, 1)`.
    weights
        `W_1, W_2, W_3`, of the variances `2 / n_{l−1}` and `1 / n_{L−1}`, which the feedback has too.
    proportional
        Whether the prediction is `ρ K_BP`.
    """

    inputs: Float[Array, "examples features"]
    weights: tuple[Float[Array, "_ _"], ...]
    proportional: bool = eqx.field(static=True)
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result E, theorem 3 in operator form}
}"""
    statement: ClassVar[str] = (
        "Over independent feedback matrices of mean zero the tangent kernel J J~^T of feedback alignment and of direct "
        "feedback alignment has the mean (H H^T) x I, with H the activations that the last layer multiplies; no factor "
        "1/N. The updates of the hidden layers have the mean zero."
    )
    observables: ClassVar[tuple[str, ...]] = ("feedback_alignment", "direct_feedback_alignment", "hidden_update")
    assumptions: ClassVar[tuple[str, ...]] = (
        "the feedback matrices are independent of the weights and of each other, with mean zero",
        "the last layer has the exact gradient",
    )
    breaks_when: ClassVar[str] = "All matrices of a chain are tied, or training has aligned the weights."
    effect: ClassVar[float] = 0.1

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        examples: int = 5,
        width: int = 8,
        replicates: int = 4000,
        instance_seed: int = INSTANCE_SEED,
    ) -> "MeanFeedbackKernel":
        """Five examples of 6 features, two hidden layers of 8 units and 2 outputs, four thousand draws."""
        generator = np.random.default_rng(instance_seed)
        return cls(
            inputs=jnp.asarray(generator.standard_normal((examples, 6)), dtype),
            weights=initial_weights((6, width, width, 2), generator, dtype=dtype),
            proportional=False,
            replicates=replicates,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        examples: int = 12,
        width: int = 16,
        replicates: int = 20_000,
        **options,
    ) -> "MeanFeedbackKernel":
        """Twelve examples, width 16 and twenty thousand draws; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, examples=examples, width=width, replicates=replicates, **options)

    def grid(self) -> Float[Array, " size"]:
        """Rows of the kernel."""
        return jnp.arange(self.inputs.shape[0] * self.weights[-1].shape[0], dtype=self.dtype)

    def predict(self, grid: Float[Array, " size"]) -> dict[str, Curve]:
        """The kernel of the last layer, and no update of the hidden layers."""
        network = MLP(self.weights)
        mean = output_kernel(network, self.inputs)
        if self.proportional:
            exact = kernel(network, self.inputs, Backprop())
            mean = jnp.trace(mean) / jnp.trace(exact) * exact
        hidden = sum(weight.size for weight in self.weights[:-1])
        update = jnp.zeros((grid.size, hidden), self.dtype)
        return {
            "feedback_alignment": Curve(grid, mean),
            "direct_feedback_alignment": Curve(grid, mean),
            "hidden_update": Curve(grid, update),
        }

    def sample(self, grid: Float[Array, " size"], *, key: Key) -> dict[str, Curve]:
        """Jacobian times updates for one draw of each kind of feedback."""
        network = MLP(self.weights)
        jacobian = jax.jacrev(lambda flat, unravel: MLP(unravel(flat))(self.inputs).ravel())(
            *ravel_pytree(self.weights)
        )
        first, second = jax.random.split(key)
        sequential = self._updates(network, FeedbackAlignment.sample(network, key=first))
        direct = self._updates(network, DirectFeedbackAlignment.sample(network, key=second))
        hidden = sum(weight.size for weight in self.weights[:-1])
        largest = jnp.max(jnp.linalg.norm(jacobian[:, :hidden], axis=1))
        kernels = [jnp.matmul(jacobian, updates.T, precision="highest") for updates in (sequential, direct)]
        return {
            "feedback_alignment": Curve(grid, kernels[0]),
            "direct_feedback_alignment": Curve(grid, kernels[1]),
            "hidden_update": Curve(grid, sequential[:, :hidden] / largest),
        }

    def _updates(self, network: MLP, rule) -> Float[Array, "size parameters"]:
        """One row for each example and output: what the rule would do for that error alone."""
        forward = network.forward(self.inputs)
        shape = forward.outputs.shape
        errors = jnp.eye(forward.outputs.size, dtype=self.dtype).reshape(-1, *shape)

        def update(error):
            return ravel_pytree(rule.gradients(network, forward, error).weights)[0]

        return jax.vmap(update)(errors)

    def counterfeit(self) -> "MeanFeedbackKernel":
        """One slowdown for all directions."""
        return replace(self, proportional=True)
