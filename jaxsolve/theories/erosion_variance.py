"""The variance of the initial erosion, exact at every depth, for feedback alignment and direct feedback alignment."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..feedback import (
    MLP,
    DirectFeedbackAlignment,
    FeedbackAlignment,
    erosion_form,
    initial_erosion,
    initial_weights,
    weight_variances,
)

INSTANCE_SEED = 605


class ErosionVariance(AbstractTheory):
    """`Var e_0` is a sum over layers, because terms of different layers are odd in some feedback matrix.

    With `S_L = r r^T`, each hidden layer adds `σ_l² Σ_{nm} (M_l M_l^T ⊙ S_{l+1})_{nm}`, where
    `S_l = σ_l² S_{l+1} ⊙ (φ'_l φ'_l^T)` for feedback alignment and `S_l = r r^T` for direct feedback alignment. Only
    the first two moments of the entries matter: here the entries are signs, not normal. The measurement is half the
    squared difference of two independent draws, each from both backward passes, which knows nothing of the mean.

    Attributes
    ----------
    inputs, targets
        `N(0, 1)`.
    weights
        `W_1, …, W_L` by number of hidden layers, of the variances `2 / n_{l−1}` and `1 / n_{L−1}`, which the feedback
        has too.
    variance_factor
        What the prediction is multiplied with: 1.
    """

    inputs: Float[Array, "examples features"]
    targets: Float[Array, "examples outputs"]
    weights: tuple[tuple[Float[Array, "_ _"], ...], ...]
    variance_factor: Scalar
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@misc{erosion-variance,
  title = {Second moments of the initial erosion},
  note = {elementary; completes result E of source document 002, which gives the mean}
}"""
    statement: ClassVar[str] = (
        "Over independent feedback entries of mean zero and variance sigma_l^2 the erosion of feedback alignment has "
        "the variance sum_l sigma_l^2 sum_nm (M_l M_l^T * S_(l+1))_nm with S_L = r r^T and "
        "S_l = sigma_l^2 S_(l+1) * (gate_l gate_l^T); for direct feedback alignment all S_l are r r^T."
    )
    observables: ClassVar[tuple[str, ...]] = ("feedback_alignment", "direct_feedback_alignment")
    assumptions: ClassVar[tuple[str, ...]] = (
        "independent entries of mean zero and one variance per matrix, normal or not",
        "independent of the weights and the residual",
    )
    breaks_when: ClassVar[str] = "Entries of one matrix are correlated, or two matrices are tied."
    effect: ClassVar[float] = 0.1

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        depths: tuple[int, ...] = (1, 3),
        width: int = 16,
        examples: int = 32,
        replicates: int = 6000,
        instance_seed: int = INSTANCE_SEED,
    ) -> "ErosionVariance":
        """Networks of width 16 with 1 and 3 hidden layers, 32 examples of 16 features and 4 random labels."""
        generator = np.random.default_rng(instance_seed)

        def normal(shape):
            return jnp.asarray(generator.standard_normal(shape), dtype)

        inputs, targets = normal((examples, 16)), normal((examples, 4))
        weights = [initial_weights((16, *[width] * depth, 4), generator, dtype=dtype) for depth in depths]
        return cls(
            inputs=inputs,
            targets=targets,
            weights=tuple(weights),
            variance_factor=jnp.ones((), dtype),
            replicates=replicates,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        depths: tuple[int, ...] = (1, 2, 3, 4, 6),
        width: int = 32,
        examples: int = 128,
        **options,
    ) -> "ErosionVariance":
        """Width 32, up to 6 hidden layers, 128 examples; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, depths=depths, width=width, examples=examples, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of hidden layers."""
        return jnp.asarray([len(weights) - 1 for weights in self.weights], self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The sums over layers."""
        pairs = [_variances(self.inputs, self.targets, weights) for weights in self.weights]
        columns = zip(self.observables, zip(*pairs, strict=True), strict=True)
        return {name: Curve(grid, self.variance_factor * jnp.stack(column)) for name, column in columns}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Half the squared difference of two draws."""
        found = {}
        for name, rule in zip(self.observables, (FeedbackAlignment, DirectFeedbackAlignment), strict=True):
            rows = []
            for index, weights in enumerate(self.weights):
                keys = jax.random.split(jax.random.fold_in(key, index))
                erosions = jax.vmap(eqx.Partial(_drawn, rule, self.inputs, self.targets, weights))(keys)
                rows.append((erosions[0] - erosions[1]) ** 2 / 2)
            found[name] = Curve(grid, jnp.stack(rows))
        return found

    def counterfeit(self) -> "ErosionVariance":
        """A fifth too much variance, as for a standard deviation that is a tenth too large."""
        return eqx.tree_at(lambda theory: theory.variance_factor, self, 1.2 * self.variance_factor)


@eqx.filter_jit
def _variances(inputs, targets, weights):
    network = MLP(weights)
    form = erosion_form(network, inputs, network(inputs) - targets, throw=False)
    entries = weight_variances(network.widths)[1:]
    return form.sequential_variance(entries), form.direct_variance(entries)


def _drawn(rule, inputs: Array, targets: Array, weights: tuple[Array, ...], key: Key) -> Scalar:
    network = MLP(weights)
    normal = rule.sample(network, key=key).feedback
    pairs = zip(normal, weight_variances(network.widths)[1:], strict=True)
    signs = rule([variance**0.5 * jnp.sign(matrix) for matrix, variance in pairs])
    return initial_erosion(network, inputs, network(inputs) - targets, signs, throw=False).erosion
