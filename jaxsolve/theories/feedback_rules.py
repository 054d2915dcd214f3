"""What backpropagation and feedback alignment compute, and how fast the loss falls along it."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..feedback import MLP, Backprop, DirectFeedbackAlignment, FeedbackAlignment

INSTANCE_SEED = 10


class FeedbackRules(AbstractTheory):
    """Errors are sent down layer by layer, and a layer's gradient pairs its error with its input.

    With `δ_L = (f − Y)/N` and `g_l = δ_lᵀ h_{l−1}`, backpropagation has `δ_l = (δ_{l+1} W_{l+1}) ⊙ φ'_l`, feedback
    alignment `(δ_{l+1} B_lᵀ) ⊙ φ'_l` and direct feedback alignment `(δ_L B_lᵀ) ⊙ φ'_l`. The output layer has one
    gradient under all of them. Along `g` the loss `‖f − Y‖²/(2N)` falls at the speed `Σ_l ⟨g_l^BP, g_l⟩`, and the
    erosion of feedback alignment is `1 − speed / speed_BP`.

    The prediction uses these recursions. The measurement differentiates: the loss for backpropagation; for the others,
    layer by layer, the pairing of the residual with what `h_l` becomes on a way up through the feedback matrices, on
    which the gates are constants. Speeds are derivatives of the loss along the measured directions. All layers have
    one width. Gradients are padded with zero layers to the largest depth.

    The counterfeit forgets a transpose: `δ_{l+1} B_l`.

    Attributes
    ----------
    inputs, targets
        Gaussian numbers.
    weights
        `W_1, …, W_L` of the deepest network; one of fewer layers has the first of them.
    feedback, direct
        Matrices of feedback alignment and of direct feedback alignment.
    """

    inputs: Float[Array, "examples width"]
    targets: Float[Array, "examples width"]
    weights: Float[Array, "layers width width"]
    feedback: Float[Array, "hidden width width"]
    direct: Float[Array, "hidden width width"]
    depths: tuple[int, ...] = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=128.0)
    source: ClassVar[str] = """@article{lillicrap2016random,
  author = {Lillicrap, Timothy P. and Cownden, Daniel and Tweed, Douglas B. and Akerman, Colin J.},
  title = {Random synaptic feedback weights support error backpropagation for deep learning},
  journal = {Nature Communications},
  volume = {7},
  year = {2016},
}"""
    statement: ClassVar[str] = (
        "Backpropagation, feedback alignment and direct feedback alignment are three recursions for the error of a "
        "layer, the output layer has one gradient under all, and the loss ||f - Y||^2/(2N) falls along an update "
        "direction at the sum over layers of its inner product with the gradient."
    )
    observables: ClassVar[tuple[str, ...]] = (
        "outputs",
        "loss",
        "backprop",
        "feedback_alignment",
        "direct_feedback_alignment",
        "output_gradient",
        "backprop_speed",
        "erosion",
    )
    assumptions: ClassVar[tuple[str, ...]] = (
        "rectified hidden layers, a linear output layer, no biases",
        "no pre-activation is zero",
    )
    breaks_when: ClassVar[str] = "A step is finite: speeds are derivatives."
    effect: ClassVar[float] = 1e-3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        examples: int = 12,
        width: int = 10,
        depths: tuple[int, ...] = (1, 3),
        instance_seed: int = INSTANCE_SEED,
    ) -> "FeedbackRules":
        """Twelve examples, networks of width 10 with 1 and 3 hidden layers."""
        generator, deepest = np.random.default_rng(instance_seed), max(depths)

        def drawn(*shape, scale=1.0):
            return jnp.asarray(scale * generator.standard_normal(shape), dtype)

        scale = (2 / width) ** 0.5
        return cls(
            inputs=drawn(examples, width),
            targets=drawn(examples, width),
            weights=drawn(deepest + 1, width, width, scale=scale),
            feedback=drawn(deepest, width, width, scale=scale),
            direct=drawn(deepest, width, width, scale=scale),
            depths=depths,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        examples: int = 128,
        width: int = 64,
        depths: tuple[int, ...] = (1, 2, 3, 6),
        **options,
    ) -> "FeedbackRules":
        """128 examples, networks of width 64 with 1, 2, 3 and 6 hidden layers."""
        return cls.quick(dtype=dtype, examples=examples, width=width, depths=depths, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of hidden layers."""
        return jnp.asarray(self.depths, self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The recursions."""
        return self._curves(grid, [_recursions(*self._of_depth(depth)) for depth in self.depths])

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Automatic differentiation."""
        del key
        return self._curves(grid, [_derivatives(*self._of_depth(depth)) for depth in self.depths])

    def counterfeit(self) -> "FeedbackRules":
        """Feedback matrices of feedback alignment transposed."""
        return eqx.tree_at(lambda theory: theory.feedback, self, jnp.swapaxes(self.feedback, 1, 2))

    def _of_depth(self, depth: int):
        return self.inputs, self.targets, self.weights[: depth + 1], self.feedback[:depth], self.direct[:depth]

    def _curves(self, grid, columns) -> dict[str, Curve]:
        padding = [(0, len(self.weights))] + [(0, 0)] * 2
        rows = [
            [jnp.pad(value, padding)[: len(self.weights)] if value.ndim == 3 else value for value in column]
            for column in columns
        ]
        values = (jnp.stack(row) for row in zip(*rows, strict=True))
        return {name: Curve(grid, value) for name, value in zip(self.observables, values, strict=True)}


@jax.jit
def _recursions(inputs, targets, weights, feedback, direct):
    network = MLP(weights)
    forward = network.forward(inputs)
    cotangent = (forward.outputs - targets) / len(inputs)
    rules = Backprop(), FeedbackAlignment(feedback), DirectFeedbackAlignment(direct)
    updates = [jnp.stack(rule.gradients(network, forward, cotangent).weights) for rule in rules]
    speed, other = (rule.speed(network, forward, cotangent, throw=False) for rule in rules[:2])
    loss = len(inputs) * jnp.sum(cotangent**2) / 2
    return forward.outputs, loss, *updates, updates[0][-1], speed, 1 - other / speed


@jax.jit
def _derivatives(inputs, targets, weights, feedback, direct):
    def loss(weights):
        return jnp.sum((_layers(weights, inputs)[-1] - targets) ** 2) / (2 * len(inputs))

    layers = _layers(weights, inputs)
    residual = (layers[-1] - targets) / len(inputs)

    def paired(matrices, sequential, layer, weight):
        """The residual, paired with what a layer becomes on its way up through feedback."""
        values = _product(layers[layer], weight.T)
        if layer == len(weights) - 1:
            return jnp.sum(residual * values)
        values = _product(jnp.maximum(values, 0), matrices[layer])
        if sequential:
            for above in range(layer + 1, len(weights) - 1):
                values = _product(jnp.where(layers[above + 1] > 0, values, 0), matrices[above])
        return jnp.sum(residual * values)

    def update(matrices, sequential):
        def total(weights):
            return sum(paired(matrices, sequential, layer, weight) for layer, weight in enumerate(weights))

        return jax.grad(total)(weights)

    exact, sequential, straight = jax.grad(loss)(weights), update(feedback, True), update(direct, False)
    speed, other = (jax.jvp(loss, (weights,), (direction,))[1] for direction in (exact, sequential))
    return layers[-1], loss(weights), exact, sequential, straight, sequential[-1], speed, 1 - other / speed


def _layers(weights, inputs):
    layers = [inputs]
    for weight in weights[:-1]:
        layers.append(jnp.maximum(_product(layers[-1], weight.T), 0))
    return [*layers, _product(layers[-1], weights[-1].T)]


def _product(first, second):
    return jnp.matmul(first, second, precision="highest")
