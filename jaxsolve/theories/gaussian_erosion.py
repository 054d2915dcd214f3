"""With one hidden layer and Gaussian feedback the initial erosion is exactly normal."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import ArrayLike, Key, Scalar
from ..evidence import AbstractTheory, Kind, Law, LawRule, Samples
from ..feedback import MLP, FeedbackAlignment, erosion_form, initial_erosion, initial_weights

INSTANCE_SEED = 3


class GaussianErosion(AbstractTheory):
    """`e_0 ~ N(hidden share, σ_B² ‖C‖² / speed_BP²)` over the feedback of one hidden layer.

    The erosion is affine in `B`, with the coefficients `C = (φ' ⊙ (x g_1^T))^T r` from one backward pass; the
    prediction takes its moments from them. The measurement draws `B` and runs both backward passes.

    Attributes
    ----------
    inputs, targets
        `N(0, 1)`, the same for all networks.
    weights
        `W_1` and `W_2` by width; the first axis runs over initialisations. Variance `2 / n_0` and `1 / n_1`.
    feedback_gain
        `σ_B²` times the width.
    deviation_factor
        What the predicted standard deviation is multiplied with: 1.
    """

    inputs: Float[Array, "examples features"]
    targets: Float[Array, "examples outputs"]
    weights: tuple[tuple[Float[Array, "initialisations _ _"], ...], ...]
    feedback_gain: Scalar
    deviation_factor: Scalar
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.LAW
    rule: ClassVar[LawRule] = LawRule()
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result E, proposition 3}
}"""
    statement: ClassVar[str] = (
        "With one hidden layer and feedback entries N(0, sigma_B^2) the erosion 1 - speed_FA / speed_BP is normal with "
        "mean 1 - ||g_2||^2 / sum_l ||g_l||^2 and variance sigma_B^2 ||C||_F^2 / speed_BP^2."
    )
    observables: ClassVar[tuple[str, ...]] = ("erosion",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "one hidden layer",
        "independent normal feedback entries of one variance, independent of the weights and the residual",
    )
    breaks_when: ClassVar[str] = "With two hidden layers feedback matrices are multiplied; the tails are then heavier."
    effect: ClassVar[float] = 0.04

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        widths: tuple[int, ...] = (16, 64),
        initialisations: int = 3,
        examples: int = 32,
        outputs: int = 2,
        feedback_gain: float = 1.0,
        replicates: int = 4096,
        instance_seed: int = INSTANCE_SEED,
    ) -> "GaussianErosion":
        """Two widths, three initialisations each, 32 examples of 16 features and 2 random labels, 4096 draws."""
        generator = np.random.default_rng(instance_seed)

        def normal(*shape):
            return jnp.asarray(generator.standard_normal(shape), dtype)

        inputs, targets = normal(examples, 16), normal(examples, outputs)
        leading = (initialisations,)
        weights = [initial_weights((16, width, outputs), generator, leading=leading, dtype=dtype) for width in widths]
        return cls(
            inputs=inputs,
            targets=targets,
            weights=tuple(weights),
            feedback_gain=jnp.asarray(feedback_gain, dtype),
            deviation_factor=jnp.ones((), dtype),
            replicates=replicates,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        widths: tuple[int, ...] = (16, 32, 64, 128),
        examples: int = 128,
        **options,
    ) -> "GaussianErosion":
        """Four widths and 128 examples; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, widths=widths, examples=examples, **options)

    def grid(self) -> Float[Array, " panel"]:
        """Widths, with a tenth for each initialisation: 16.0, 16.1, 16.2, 32.0, …"""
        return jnp.asarray(
            [first.shape[1] + index / 10 for first, _ in self.weights for index in range(first.shape[0])], self.dtype
        )

    def predict(self, grid: Float[Array, " panel"]) -> dict[str, Law]:
        """Means and variances of the normal laws."""
        pairs = [_moments(self.inputs, self.targets, weights, self.feedback_gain) for weights in self.weights]
        mean, variance = (jnp.concatenate(column) for column in zip(*pairs, strict=True))
        variance = self.deviation_factor**2 * variance
        return {"erosion": Law(eqx.Partial(_cdf, mean, variance), mean, variance)}

    def sample(self, grid: Float[Array, " panel"], *, key: Key) -> dict[str, Samples]:
        """One draw of the feedback of every network, and both backward passes with it."""
        panel = []
        for index, (first, second) in enumerate(self.weights):
            keys = jax.random.split(jax.random.fold_in(key, index), first.shape[0])
            panel.append(jax.vmap(self._drawn)(first, second, keys))
        return {"erosion": Samples(jnp.concatenate(panel)[None, :])}

    def _drawn(self, first: Array, second: Array, key: Key) -> Scalar:
        network = MLP((first, second))
        normal = jax.random.normal(key, (second.size,), self.dtype).reshape(second.shape[::-1])
        rule = FeedbackAlignment((jnp.sqrt(self.feedback_gain / first.shape[0]) * normal,))
        residual = network(self.inputs) - self.targets
        return initial_erosion(network, self.inputs, residual, rule, throw=False).erosion

    def counterfeit(self) -> "GaussianErosion":
        """A standard deviation that is a tenth too large."""
        return eqx.tree_at(lambda theory: theory.deviation_factor, self, 1.1 * self.deviation_factor)


@eqx.filter_jit
def _moments(inputs, targets, weights, feedback_gain):
    def moments(first, second):
        network = MLP((first, second))
        form = erosion_form(network, inputs, network(inputs) - targets, throw=False)
        return form.hidden_share, form.direct_variance(feedback_gain[None] / first.shape[0])

    return jax.vmap(moments)(*weights)


def _cdf(mean: Array, variance: Array, values: ArrayLike) -> Array:
    standardised = (values - mean[None, :]) / jnp.sqrt(variance)[None, :]
    return jax.scipy.special.ndtr(standardised)
