"""The mean initial erosion of a convolutional network under cross-entropy."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..datasets import digits, one_hot
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..feedback import Backprop, Convolution, ConvolutionalNetwork, DirectFeedbackAlignment, FeedbackAlignment

INSTANCE_SEED = 4
CONVOLUTIONS = Convolution((1, 14, 14), (3, 3), (2, 2)), Convolution((8, 7, 7), (3, 3), (2, 2))
SHAPES = (8, 9), (16, 72), (10, 256)


class ConvolutionalErosion(AbstractTheory):
    """`E_B[e_0] = 1 − ‖g_L‖² / Σ_l ‖g_l‖²` for convolutions too, and whatever the loss.

    The erosion `e_0` of feedback alignment at the start is one minus its speed over that of backpropagation. Averaged
    over independent feedback of mean zero, only the output layer keeps its speed. Weight sharing does no harm: the
    feedback of a convolution is one matrix in the place of its kernel, at every position. The loss is the mean
    cross-entropy, so the cotangent is `(softmax(f) − Y)/N`; factors of the loss cancel.

    The network has two convolutions of 3 by 3 with stride 2, to 8 and 16 channels, and a linear layer to ten classes;
    weights `N(0, 2/fan_in)`, the last `N(0, 1/fan_in)`, no biases, rectified. The prediction differentiates the loss.
    The measurement draws feedback with the variances of the weights and sends errors back through it.

    The counterfeit leaves the first convolution out of the sum.

    Attributes
    ----------
    images, targets
        Digits, means over 2 by 2 pixels, with mean 0 and variance 1 over all pixels; one-hot labels.
    weights
        Three matrices for each initialisation.
    layer_weights
        Factors of the squared norms of the layers in the sum.
    """

    images: Float[Array, "examples 196"]
    targets: Float[Array, "examples 10"]
    weights: tuple[Float[Array, "points _ _"], ...]
    layer_weights: Float[Array, "3"]
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@misc{convolutional-erosion,
  title = {Feedback alignment measured against backpropagation},
  note = {source document 002, addendum on convolutional networks}
}"""
    statement: ClassVar[str] = (
        "At initialisation the mean over feedback draws of one minus speed over speed of backpropagation is the share "
        "of the hidden layers in the squared gradient norm, for feedback alignment and direct feedback alignment of a "
        "convolutional network under cross-entropy."
    )
    observables: ClassVar[tuple[str, ...]] = ("feedback_alignment", "direct_feedback_alignment")
    assumptions: ClassVar[tuple[str, ...]] = (
        "feedback matrices of mean zero, independent of each other, of the weights and of the residual",
    )
    breaks_when: ClassVar[str] = "Training has aligned the weights with the feedback, or feedback matrices are tied."
    effect: ClassVar[float] = 0.1

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        examples: int = 16,
        initialisations: int = 2,
        replicates: int = 128,
        instance_seed: int = INSTANCE_SEED,
    ) -> "ConvolutionalErosion":
        """16 digits, two initialisations."""
        generator = np.random.default_rng(instance_seed)
        images, labels = digits(examples, scaling="unit_interval", dtype=dtype)
        pooled = np.asarray(images).reshape(examples, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(examples, 196)
        variances = [2 / fan_in for _, fan_in in SHAPES[:-1]] + [1 / SHAPES[-1][1]]
        return cls(
            images=jnp.asarray((pooled - pooled.mean()) / pooled.std(), dtype),
            targets=one_hot(labels, dtype=dtype),
            weights=tuple(
                jnp.asarray(variance**0.5 * generator.standard_normal((initialisations, *shape)), dtype)
                for shape, variance in zip(SHAPES, variances, strict=True)
            ),
            layer_weights=jnp.ones(3, dtype),
            replicates=replicates,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        examples: int = 64,
        initialisations: int = 6,
        replicates: int = 512,
        **options,
    ) -> "ConvolutionalErosion":
        """64 digits, six initialisations."""
        sizes = {"examples": examples, "initialisations": initialisations, "replicates": replicates}
        return cls.quick(dtype=dtype, **sizes, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of the initialisations."""
        return jnp.arange(len(self.weights[0]), dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The hidden share, one for both rules."""
        norms = _squared_norms(self.weights, self.images, self.targets) * self.layer_weights[None, :]
        share = 1 - norms[:, -1] / jnp.sum(norms, axis=1)
        return {name: Curve(grid, share) for name in self.observables}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """The erosion under one draw of feedback for each initialisation."""

        def erosions(weights, key):
            network = ConvolutionalNetwork(weights, convolutions=CONVOLUTIONS)
            forward = network.forward(self.images)
            cotangent = jax.nn.softmax(forward.outputs) - self.targets
            rules = [kind.sample(network, key=key) for kind in (FeedbackAlignment, DirectFeedbackAlignment)]
            exact, *others = (rule.gradients(network, forward, cotangent) for rule in (Backprop(), *rules))

            def along(direction):
                pairs = zip(exact.weights, direction.weights, strict=True)
                return jnp.stack([jnp.sum(one * other) for one, other in pairs]).sum()

            return tuple(1 - along(other) / along(exact) for other in others)

        values = jax.vmap(erosions)(self.weights, jax.random.split(key, grid.size))
        return {name: Curve(grid, value) for name, value in zip(self.observables, values, strict=True)}

    def counterfeit(self) -> "ConvolutionalErosion":
        """Without the first convolution."""
        return eqx.tree_at(lambda theory: theory.layer_weights, self, self.layer_weights.at[0].set(0))


@jax.jit
def _squared_norms(weights, images, targets):
    """Of the gradient of the cross-entropy, one number per layer."""

    def loss(weights):
        outputs = ConvolutionalNetwork(weights, convolutions=CONVOLUTIONS)(images)
        return -jnp.mean(jnp.sum(targets * jax.nn.log_softmax(outputs), axis=1))

    gradients = jax.vmap(jax.grad(loss))(weights)
    return jnp.stack([jnp.sum(gradient**2, axis=(1, 2)) for gradient in gradients], axis=1)
