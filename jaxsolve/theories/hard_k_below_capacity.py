"""In narrow networks the count of constraints understates the gap of feedback alignment."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Key
from ..curves import GapOverWidths
from ..evidence import AbstractTheory, Curve, Kind, NullModelRule

INSTANCE_SEED = 45


class HardKBelowCapacity(AbstractTheory):
    """Far below capacity, `P − k < N n_L`, the null model of a random subspace says half of the true gap or less.

    The model keeps a share `1 − k/P` of the speed of every mode of the tangent kernel, with `k` the number of
    directions that alignment constrains. Networks without biases with two hidden layers of width `w` train at full
    batch on random inputs with random labels; the network of each width is a field, the feedback is averaged over.
    In wide networks it overstates the gap: the other side is ``hard_k_gap``.

    The counterfeit is the null model times twenty.

    Attributes
    ----------
    runs
        The networks at the start, and the examples; the widths are the grid.
    factor
        What the prediction is multiplied with: 1.
    """

    runs: GapOverWidths
    factor: Float[Array, ""]
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.NULL_MODEL
    rule: ClassVar[NullModelRule] = NullModelRule(factor=2.0, direction="under")
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result D, negative result}
}"""
    statement: ClassVar[str] = (
        "With far fewer parameters left than outputs to fit, the gap to backpropagation predicted by deleting a random "
        "subspace of one dimension per constraint is at most half of the measured gap after training."
    )
    observables: ClassVar[tuple[str, ...]] = ("gap",)
    assumptions: ClassVar[tuple[str, ...]] = ("random labels", "the same start for both rules")
    breaks_when: ClassVar[str] = "The network is wide: the null model then says too much."
    effect: ClassVar[float] = 1.0

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        widths: tuple[int, ...] = (6,),
        inputs: int = 8,
        outputs: int = 2,
        examples: int = 32,
        learning_rate: float = 0.02,
        steps: int = 2000,
        replicates: int = 12,
        instance_seed: int = INSTANCE_SEED,
    ) -> "HardKBelowCapacity":
        """One narrow width, 32 examples of 8 inputs and 2 outputs, 2000 steps, 12 draws of feedback."""
        runs = GapOverWidths.drawn(
            widths,
            inputs=inputs,
            outputs=outputs,
            examples=examples,
            learning_rate=learning_rate,
            steps=steps,
            seed=instance_seed,
            dtype=dtype,
        )
        return cls(runs=runs, factor=jnp.ones((), dtype), replicates=replicates)

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, widths: tuple[int, ...] = (8, 12), replicates: int = 8
    ) -> "HardKBelowCapacity":
        """Widths 8 and 12, narrower than those of the document, 128 examples, 30 000 steps, eight draws of feedback."""
        return cls.quick(
            dtype=dtype,
            widths=widths,
            inputs=16,
            outputs=4,
            examples=128,
            learning_rate=0.01,
            steps=30_000,
            replicates=replicates,
        )

    def grid(self) -> Float[Array, " points"]:
        """The widths."""
        return self.runs.widths

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The closed form of the null model."""
        return {"gap": Curve(grid, self.factor * self.runs.constraint_count())}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Two training runs at each width."""
        return {"gap": Curve(grid, self.runs.trained(key))}

    def counterfeit(self) -> "HardKBelowCapacity":
        """Twenty times the prediction."""
        return eqx.tree_at(lambda theory: theory.factor, self, 20 * self.factor)
