"""Under direct feedback alignment the initial erosion is exactly normal at every depth."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import ArrayLike, Key, Scalar
from ..evidence import AbstractTheory, Kind, Law, LawRule, Samples
from ..feedback import MLP, DirectFeedbackAlignment, erosion_form, initial_erosion, initial_weights, weight_variances

INSTANCE_SEED = 604


class DirectErosionLaw(AbstractTheory):
    """`e_0 ~ N(hidden share, Σ_l σ_l² ‖C_l‖² / speed_BP²)` over Gaussian direct feedback, for any number of layers.

    Every layer gets the error of the outputs through a matrix of its own, so that the erosion is affine in all of them,
    with the coefficients `C_l = M_l^T r`. The measurement draws the matrices and runs both backward passes.

    Attributes
    ----------
    inputs, targets
        `N(0, 1)`.
    weights
        `W_1, …, W_L` by number of hidden layers, of the variances `2 / n_{l−1}` and `1 / n_{L−1}`, which the feedback
        has too.
    deviation_factor
        What the predicted standard deviation is multiplied with: 1.
    """

    inputs: Float[Array, "examples features"]
    targets: Float[Array, "examples outputs"]
    weights: tuple[tuple[Float[Array, "_ _"], ...], ...]
    deviation_factor: Scalar
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.LAW
    rule: ClassVar[LawRule] = LawRule()
    source: ClassVar[str] = """@misc{direct-erosion,
  title = {Direct feedback alignment is affine in its feedback},
  note = {elementary; extends proposition 3 of source document 002 to any depth}
}"""
    statement: ClassVar[str] = (
        "Under direct feedback alignment with independent normal entries the erosion 1 - speed_DFA / speed_BP is "
        "normal with mean 1 - ||g_L||^2 / sum_l ||g_l||^2 and variance sum_l sigma_l^2 ||C_l||_F^2 / speed_BP^2, for "
        "any number of hidden layers, given weights and residual."
    )
    observables: ClassVar[tuple[str, ...]] = ("erosion",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "normal feedback entries, independent of each other, of the weights and of the residual",
        "every hidden layer has a matrix of its own, straight from the outputs",
    )
    breaks_when: ClassVar[str] = "The error is sent down layer by layer: products of feedback matrices are not normal."
    effect: ClassVar[float] = 0.05

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        depths: tuple[int, ...] = (2, 4),
        width: int = 16,
        examples: int = 32,
        replicates: int = 4096,
        instance_seed: int = INSTANCE_SEED,
    ) -> "DirectErosionLaw":
        """Networks of width 16 with 2 and 4 hidden layers, 32 examples of 16 features and 4 random labels."""
        generator = np.random.default_rng(instance_seed)

        def normal(shape):
            return jnp.asarray(generator.standard_normal(shape), dtype)

        inputs, targets = normal((examples, 16)), normal((examples, 4))
        weights = [initial_weights((16, *[width] * depth, 4), generator, dtype=dtype) for depth in depths]
        return cls(
            inputs=inputs,
            targets=targets,
            weights=tuple(weights),
            deviation_factor=jnp.ones((), dtype),
            replicates=replicates,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        depths: tuple[int, ...] = (1, 2, 3, 4, 5, 6),
        width: int = 32,
        examples: int = 128,
        **options,
    ) -> "DirectErosionLaw":
        """Width 32, 1 to 6 hidden layers, 128 examples; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, depths=depths, width=width, examples=examples, **options)

    def grid(self) -> Float[Array, " panel"]:
        """Numbers of hidden layers."""
        return jnp.asarray([len(weights) - 1 for weights in self.weights], self.dtype)

    def predict(self, grid: Float[Array, " panel"]) -> dict[str, Law]:
        """Means and variances of the normal laws."""
        pairs = [_moments(self.inputs, self.targets, weights) for weights in self.weights]
        mean, variance = (jnp.stack(column) for column in zip(*pairs, strict=True))
        variance = self.deviation_factor**2 * variance
        return {"erosion": Law(eqx.Partial(_cdf, mean, variance), mean, variance)}

    def sample(self, grid: Float[Array, " panel"], *, key: Key) -> dict[str, Samples]:
        """One draw of the feedback of every network, and both backward passes with it."""
        panel = []
        for index, weights in enumerate(self.weights):
            network = MLP(weights)
            rule = DirectFeedbackAlignment.sample(network, key=jax.random.fold_in(key, index))
            residual = network(self.inputs) - self.targets
            panel.append(initial_erosion(network, self.inputs, residual, rule, throw=False).erosion)
        return {"erosion": Samples(jnp.stack(panel)[None, :])}

    def counterfeit(self) -> "DirectErosionLaw":
        """A standard deviation that is a tenth too large."""
        return eqx.tree_at(lambda theory: theory.deviation_factor, self, 1.1 * self.deviation_factor)


@eqx.filter_jit
def _moments(inputs, targets, weights):
    network = MLP(weights)
    form = erosion_form(network, inputs, network(inputs) - targets, throw=False)
    return form.hidden_share, form.direct_variance(weight_variances(network.widths)[1:])


def _cdf(mean: Array, variance: Array, values: ArrayLike) -> Array:
    standardised = (values - mean[None, :]) / jnp.sqrt(variance)[None, :]
    return jax.scipy.special.ndtr(standardised)
