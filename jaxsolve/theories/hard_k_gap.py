"""In wide networks the count of constraints overstates the gap of feedback alignment."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Key
from ..curves import GapOverWidths
from ..evidence import AbstractTheory, Curve, Kind, NullModelRule

INSTANCE_SEED = 45


class HardKGap(AbstractTheory):
    """Above capacity, `P − k > N n_L`, the null model of a random subspace says twice the true gap or more.

    The model keeps a share `1 − k/P` of the speed of every mode of the tangent kernel, with `k` the number of
    directions that alignment constrains. Networks without biases with two hidden layers of width `w` train at full
    batch on random inputs with random labels; the network of each width is a field, the feedback is averaged over.
    In narrow networks it does not overstate the gap at all: the other side is ``hard_k_below_capacity``.

    The counterfeit is the null model divided by ten.

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
    rule: ClassVar[NullModelRule] = NullModelRule(factor=2.0)
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result D, negative result}
}"""
    statement: ClassVar[str] = (
        "With more parameters left than outputs to fit, the gap to backpropagation predicted by deleting a random "
        "subspace of one dimension per constraint exceeds the measured gap after training by a factor of 2 or more."
    )
    observables: ClassVar[tuple[str, ...]] = ("gap",)
    assumptions: ClassVar[tuple[str, ...]] = ("random labels", "the same start for both rules")
    breaks_when: ClassVar[str] = "The network is narrow: the null model then says too little."
    effect: ClassVar[float] = 1.0

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        sweep: bool = False,
        learning_rate: float = 0.02,
        steps: int = 2000,
        instance_seed: int = INSTANCE_SEED,
        **options,
    ) -> "HardKGap":
        """One width above capacity, 32 examples of 8 inputs and 2 outputs, 2000 steps, 12 draws of feedback.

        With ``sweep`` widths 20 to 40 of the document with its 128 examples, below and above capacity: the statement
        then fails. Two draws. Other ``widths``, ``inputs``, ``outputs``, ``examples`` and ``replicates`` are options.
        """
        setting = {"widths": (28,), "inputs": 8, "outputs": 2, "examples": 32, "replicates": 12}
        if sweep:
            setting = {"widths": (20, 24, 32, 40), "inputs": 16, "outputs": 4, "examples": 128, "replicates": 2}
        setting |= options
        replicates = setting.pop("replicates")
        runs = GapOverWidths.drawn(**setting, learning_rate=learning_rate, steps=steps, seed=instance_seed, dtype=dtype)
        return cls(runs=runs, factor=jnp.ones((), dtype), replicates=replicates)

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, sweep: bool = False) -> "HardKGap":
        """Widths 36 and 40 of the document, 128 examples, 10 000 steps, eight draws of feedback.

        With ``sweep`` widths 20, 24, 32 and 40, the 30 000 steps of the document and three draws. At the large widths
        the gap after so many steps scatters over draws as much as it is large.
        """
        return cls.quick(
            dtype=dtype,
            widths=(20, 24, 32, 40) if sweep else (36, 40),
            inputs=16,
            outputs=4,
            examples=128,
            learning_rate=0.01,
            steps=30_000 if sweep else 10_000,
            replicates=3 if sweep else 8,
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

    def counterfeit(self) -> "HardKGap":
        """A tenth of the prediction."""
        return eqx.tree_at(lambda theory: theory.factor, self, 0.1 * self.factor)
