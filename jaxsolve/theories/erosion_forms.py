"""The initial erosion without a weight gradient per feedback: affine and multilinear forms of it."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..feedback import MLP, DirectFeedbackAlignment, FeedbackAlignment, erosion_form, weight_variances

INSTANCE_SEED = 606

Matrices = tuple[Float[Array, "_ _"], ...]


class ErosionForms(AbstractTheory):
    """`e_0 = hidden share − Σ_l ⟨M_l, δ_{l+1} B_l^T⟩`, with all `M_l` from one backward pass.

    With one hidden layer, and under direct feedback at any depth, that is affine in the feedback. The measurement is
    the definition: one minus the inner product of the update of the rule with the derivative of the loss, by automatic
    differentiation, over that of the derivative with itself.

    Attributes
    ----------
    inputs, targets
        `N(0, 1)`.
    weights, feedback, direct
        Of one network per number of hidden layers, with variances `2 / n_{l−1}` and `1 / n_{L−1}`.
    """

    inputs: Float[Array, "examples features"]
    targets: Float[Array, "examples outputs"]
    weights: tuple[Matrices, ...]
    feedback: tuple[Matrices, ...]
    direct: tuple[Matrices, ...]
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=64.0, relative_to="curve")
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result E, proposition 3, and its extension to any depth}
}"""
    statement: ClassVar[str] = (
        "1 - sum_l <g_l^BP, g_l> / sum_l ||g_l^BP||^2 equals the hidden share minus sum_l <M_l, delta_(l+1) B_l^T>, "
        "with M_l = gate_l * (h_(l-1) g_l^T) / sum_l ||g_l^BP||^2 from one backward pass; for direct feedback, and for "
        "one hidden layer, it is affine in the feedback."
    )
    observables: ClassVar[tuple[str, ...]] = ("feedback_alignment", "direct_feedback_alignment")
    assumptions: ClassVar[tuple[str, ...]] = ("fully connected layers", "the last layer has the exact gradient")
    breaks_when: ClassVar[str] = "A weight matrix is used twice."
    effect: ClassVar[float] = 1e-3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        depths: tuple[int, ...] = (1, 2, 3),
        width: int = 12,
        examples: int = 16,
        instance_seed: int = INSTANCE_SEED,
    ) -> "ErosionForms":
        """Networks of width 12 with 1, 2 and 3 hidden layers, 16 examples of 16 features and 4 outputs."""
        generator = np.random.default_rng(instance_seed)

        def drawn(shapes, variances):
            pairs = zip(shapes, variances, strict=True)
            return tuple(
                jnp.asarray(variance**0.5 * generator.standard_normal(shape), dtype) for shape, variance in pairs
            )

        weights, feedback, direct = [], [], []
        for depth in depths:
            hidden = [width] * depth
            widths = (16, *hidden, 4)
            variances = weight_variances(widths)
            weights.append(drawn(zip(widths[1:], widths[:-1], strict=True), variances))
            feedback.append(drawn(zip(hidden, widths[2:], strict=True), variances[1:]))
            direct.append(drawn([(size, 4) for size in hidden], variances[1:]))
        inputs, targets = drawn([(examples, 16), (examples, 4)], [1.0, 1.0])
        return cls(
            inputs=inputs, targets=targets, weights=tuple(weights), feedback=tuple(feedback), direct=tuple(direct)
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        depths: tuple[int, ...] = (1, 2, 3, 6),
        width: int = 64,
        examples: int = 128,
        **options,
    ) -> "ErosionForms":
        """Width 64, up to 6 hidden layers, 128 examples; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, depths=depths, width=width, examples=examples, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of hidden layers."""
        return jnp.asarray([len(matrices) for matrices in self.feedback], self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The forms, at the given feedback."""
        instances = zip(self.weights, self.feedback, self.direct, strict=True)
        pairs = [_forms(self.inputs, self.targets, *instance) for instance in instances]
        columns = zip(self.observables, zip(*pairs, strict=True), strict=True)
        return {name: Curve(grid, jnp.stack(column)) for name, column in columns}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """The definition."""
        del key
        rows = []
        for weights, feedback, direct in zip(self.weights, self.feedback, self.direct, strict=True):
            rules = FeedbackAlignment(feedback), DirectFeedbackAlignment(direct)
            rows.append([_defined(self.inputs, self.targets, weights, rule) for rule in rules])
        columns = zip(self.observables, zip(*rows, strict=True), strict=True)
        return {name: Curve(grid, jnp.stack(column)) for name, column in columns}

    def counterfeit(self) -> "ErosionForms":
        """The first hidden layer left out."""

        def without_first(instances):
            return tuple((jnp.zeros_like(first), *others) for first, *others in instances)

        return eqx.tree_at(
            lambda theory: (theory.feedback, theory.direct),
            self,
            (without_first(self.feedback), without_first(self.direct)),
        )


@eqx.filter_jit
def _forms(inputs, targets, weights, feedback, direct) -> tuple[Scalar, Scalar]:
    network = MLP(weights)
    form = erosion_form(network, inputs, network(inputs) - targets, throw=False)
    return form.sequential(feedback), form.direct(direct)


def _defined(inputs: Array, targets: Array, weights: Matrices, rule) -> Scalar:
    network = MLP(weights)
    forward = network.forward(inputs)
    residual = forward.outputs - targets
    gradient = jax.grad(lambda weights: jnp.sum((MLP(weights)(inputs) - targets) ** 2) / 2)(weights)
    update = rule.gradients(network, forward, residual).weights
    steepest, taken = ravel_pytree(gradient)[0], ravel_pytree(update)[0]
    return 1 - jnp.sum(steepest * taken) / jnp.sum(steepest**2)
