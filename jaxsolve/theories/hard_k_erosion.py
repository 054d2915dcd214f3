"""The count of constraints overstates what feedback alignment loses in its first step."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, NullModelRule
from ..feedback import MLP, Backprop, FeedbackAlignment, alignment_constraints

INSTANCE_SEED = 44
INPUTS, OUTPUTS, EXAMPLES = 16, 4, 128


class HardKErosion(AbstractTheory):
    """The null model says that feedback loses `k/P` of the speed; in a network it loses about half of that or less.

    `k = w² + 4 w − 2` constraints among `P = w² + 20 w` parameters of a network without biases, widths
    `(16, w, w, 4)`, 128 random examples with random labels. Measured is `1 − Σ_l ⟨g_l^BP, g_l^FA⟩ / Σ_l ‖g_l^BP‖²` at
    the start, over draws of networks and feedback matrices.

    The counterfeit counts only the constraints of the last feedback matrix: that is no overstatement any more.

    Attributes
    ----------
    widths
        `w`; also the grid.
    inputs, targets
        Of the examples.
    constraints
        `k` of each width.
    """

    inputs: Float[Array, "examples inputs"]
    targets: Float[Array, "examples outputs"]
    constraints: Float[Array, " points"]
    widths: tuple[int, ...] = eqx.field(static=True)
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.NULL_MODEL
    rule: ClassVar[NullModelRule] = NullModelRule(factor=1.4)
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result D, negative result}
}"""
    statement: ClassVar[str] = (
        "The share of parameters that alignment would constrain exceeds the mean share of the speed that feedback "
        "alignment loses in its first step by a factor of 1.4 or more, at every width."
    )
    observables: ClassVar[tuple[str, ...]] = ("erosion",)
    assumptions: ClassVar[tuple[str, ...]] = ("the hidden layers carry less than half of the squared gradient",)
    breaks_when: ClassVar[str] = "Nearly all of the gradient is in the hidden layers, as in deep networks."
    effect: ClassVar[float] = 0.3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        widths: tuple[int, ...] = (20, 40),
        replicates: int = 200,
        instance_seed: int = INSTANCE_SEED,
    ) -> "HardKErosion":
        """200 networks of width 20 and 40."""
        random = np.random.default_rng(instance_seed)
        return cls(
            inputs=jnp.asarray(random.standard_normal((EXAMPLES, INPUTS)), dtype),
            targets=jnp.asarray(random.standard_normal((EXAMPLES, OUTPUTS)), dtype),
            constraints=jnp.asarray(
                [alignment_constraints((INPUTS, width, width, OUTPUTS)) for width in widths], dtype
            ),
            widths=widths,
            replicates=replicates,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "HardKErosion":
        """1000 networks of widths 20, 24, 32 and 40."""
        return cls.quick(dtype=dtype, widths=(20, 24, 32, 40), replicates=1000)

    def grid(self) -> Float[Array, " points"]:
        """The widths."""
        return jnp.asarray(self.widths, self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """`k/P`."""
        return {"erosion": Curve(grid, self.constraints / (grid**2 + (INPUTS + OUTPUTS) * grid))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """One network and one set of feedback matrices of each width."""
        keys = jax.random.split(key, len(self.widths))
        erosion = [self._erosion(width, one) for width, one in zip(self.widths, keys, strict=True)]
        return {"erosion": Curve(grid, jnp.stack(erosion))}

    def _erosion(self, width, key):
        weights, feedback = jax.random.split(key)
        network = MLP.initialise((INPUTS, width, width, OUTPUTS), dtype=self.dtype, key=weights)
        forward = network.forward(self.inputs)
        cotangent = (forward.outputs - self.targets) / EXAMPLES
        exact, other = (
            rule.gradients(network, forward, cotangent)
            for rule in (Backprop(), FeedbackAlignment.sample(network, key=feedback))
        )
        pairs = list(zip(exact.weights, other.weights, strict=True))
        return 1 - sum(jnp.sum(one * two) for one, two in pairs) / sum(jnp.sum(one**2) for one, _ in pairs)

    def counterfeit(self) -> "HardKErosion":
        """The constraints of the last feedback matrix alone."""
        last = jnp.asarray([width * OUTPUTS - 1 for width in self.widths], self.dtype)
        return eqx.tree_at(lambda theory: theory.constraints, self, last)
