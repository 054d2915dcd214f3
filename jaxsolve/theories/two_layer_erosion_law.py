"""With two hidden layers the initial erosion of feedback alignment is a normal mixture, not normal."""

from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import ArrayLike, Key, Scalar
from ..evidence import AbstractTheory, Kind, Law, LawRule, Samples
from ..feedback import (
    MLP,
    FeedbackAlignment,
    MixedNormal,
    erosion_form,
    initial_erosion,
    initial_weights,
    two_layer_erosion,
    weight_variances,
)

INSTANCE_SEED = 607


class TwoLayerErosionLaw(AbstractTheory):
    """Given `B_2` the erosion is normal; integrated over `B_2` it has a characteristic function in closed form.

    The law is symmetric about the hidden share, and its excess kurtosis is positive. The counterfeit is the normal law
    of the same mean and variance. The networks are small, because wide ones are close to normal.

    Attributes
    ----------
    inputs, targets
        `N(0, 1)`.
    weights
        `W_1, W_2, W_3`; the first axis runs over initialisations. Variances `2 / n_0`, `2 / n_1` and `1 / n_2`, which
        the feedback has too.
    normal
        Whether the prediction is the normal law of the same two moments.
    """

    inputs: Float[Array, "examples features"]
    targets: Float[Array, "examples outputs"]
    weights: tuple[Float[Array, "initialisations _ _"], ...]
    normal: bool = eqx.field(static=True)
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.LAW
    rule: ClassVar[LawRule] = LawRule()
    source: ClassVar[str] = """@misc{two-layer-erosion,
  title = {The law of the initial erosion with two hidden layers},
  note = {elementary; answers what source document 002, result E, leaves open beyond one hidden layer}
}"""
    statement: ClassVar[str] = (
        "With two hidden layers and independent normal feedback entries the erosion of feedback alignment minus the "
        "hidden share has the characteristic function prod_k (1 + t^2 a_k)^(-1/2) exp(-t^2 c_k^2 / (2 + 2 t^2 a_k)), "
        "with coefficients from one backward pass; it is normal only where all a_k vanish."
    )
    observables: ClassVar[tuple[str, ...]] = ("erosion",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "two hidden layers and sequential feedback",
        "normal feedback entries, independent of each other, of the weights and of the residual",
    )
    breaks_when: ClassVar[str] = "A third hidden layer, or entries that are not normal."
    effect: ClassVar[float] = 0.02

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        widths: tuple[int, int] = (8, 3),
        initialisations: int = 4,
        examples: int = 16,
        replicates: int = 20_000,
        instance_seed: int = INSTANCE_SEED,
    ) -> "TwoLayerErosionLaw":
        """Four initialisations of 8 and 3 hidden units and one output, 16 examples of 8 features, 20 000 draws."""
        generator = np.random.default_rng(instance_seed)

        def normal(*shape):
            return jnp.asarray(generator.standard_normal(shape), dtype)

        inputs, targets = normal(examples, 8), normal(examples, 1)
        return cls(
            inputs=inputs,
            targets=targets,
            weights=initial_weights((8, *widths, 1), generator, leading=(initialisations,), dtype=dtype),
            normal=False,
            replicates=replicates,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, replicates: int = 50_000, **options) -> "TwoLayerErosionLaw":
        """Fifty thousand draws; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, replicates=replicates, **options)

    def grid(self) -> Float[Array, " panel"]:
        """Numbers of the initialisations."""
        return jnp.arange(self.weights[0].shape[0], dtype=self.dtype)

    def predict(self, grid: Float[Array, " panel"]) -> dict[str, Law]:
        """The mixtures."""
        mixtures = _mixtures(self.inputs, self.targets, self.weights)
        mean, variance = mixtures.mean, jax.vmap(lambda mixture: mixture.variance)(mixtures)
        cdf = eqx.Partial(_normal_cdf, mean, variance) if self.normal else eqx.Partial(_mixed_cdf, mixtures)
        return {"erosion": Law(cdf, mean, variance)}

    def sample(self, grid: Float[Array, " panel"], *, key: Key) -> dict[str, Samples]:
        """One draw of the feedback of every network, and both backward passes with it."""
        keys = jax.random.split(key, grid.size)
        erosions = jax.vmap(eqx.Partial(_drawn, self.inputs, self.targets))(self.weights, keys)
        return {"erosion": Samples(erosions[None, :])}

    def counterfeit(self) -> "TwoLayerErosionLaw":
        """The normal law with the right mean and the right variance."""
        return replace(self, normal=True)


@eqx.filter_jit
def _mixtures(inputs, targets, weights) -> MixedNormal:
    def mixture(weights):
        network = MLP(weights)
        form = erosion_form(network, inputs, network(inputs) - targets, throw=False)
        return two_layer_erosion(form, weight_variances(network.widths)[1:])

    return jax.vmap(mixture)(weights)


def _drawn(inputs: Array, targets: Array, weights: tuple[Array, ...], key: Key) -> Scalar:
    network = MLP(weights)
    rule = FeedbackAlignment.sample(network, key=key)
    return initial_erosion(network, inputs, network(inputs) - targets, rule, throw=False).erosion


def _mixed_cdf(mixtures: MixedNormal, values: ArrayLike) -> np.ndarray:
    columns = np.asarray(values).T
    laws = (jax.tree.map(lambda leaf, index=index: leaf[index], mixtures) for index in range(len(columns)))
    return np.stack([law.cdf(column) for law, column in zip(laws, columns, strict=True)], axis=1)


def _normal_cdf(mean: Array, variance: Array, values: ArrayLike) -> Array:
    return jax.scipy.special.ndtr((values - mean[None, :]) / jnp.sqrt(variance)[None, :])
