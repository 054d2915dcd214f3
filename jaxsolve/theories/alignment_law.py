"""Static alignment of random feedback: its squared cosine with the forward weights follows a Beta law."""

import math
from itertools import accumulate
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import ArrayLike, Key
from ..evidence import AbstractTheory, Kind, Law, LawRule, Samples
from ..feedback import SquaredCosineLaw, alignment, draw_squared_cosines

SHAPES = ((8, 8), (8, 16), (16, 16), (16, 32), (32, 32), (32, 64), (64, 64))
"""Shapes `(n_l, n_{l+1})` of the layers; their sizes are the dimensions 64, 128, …, 4096."""


class AlignmentLaw(AbstractTheory):
    """The squared cosine of independent isotropic matrices of `D` entries is `Beta(1/2, (D − 1)/2)`.

    A forward matrix `A = W_{l+1}^T` and a feedback matrix `B_l`, both of shape `(n_l, n_{l+1})`, with independent
    directions that are uniform on the unit sphere in `D = n_l n_{l+1}` dimensions, have `Q = ⟨A, B⟩² / (‖A‖² ‖B‖²)`.

    Attributes
    ----------
    dimensions
        `D` of each layer; also the grid.
    dimension_ratio
        What the prediction multiplies `D` with: 1.
    matrices
        Whether the matrices are formed. If not, [`jaxsolve.feedback.draw_squared_cosines`][] draws a plane instead.
    batch
        Draws in one replicate; where the matrices are formed, against one forward matrix.
    """

    dimensions: Float[Array, " panel"]
    dimension_ratio: Float[Array, ""]
    matrices: bool = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.LAW
    rule: ClassVar[LawRule] = LawRule()
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result A, theorem 1}
}"""
    statement: ClassVar[str] = (
        "The squared Frobenius cosine of a feedback matrix with the transposed forward matrix it replaces is "
        "Beta(1/2, (D - 1)/2) where their directions are independent and isotropic in D = n_l n_(l+1) dimensions; "
        "its mean is 1/D."
    )
    observables: ClassVar[tuple[str, ...]] = ("squared_cosine",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "the two directions are independent",
        "at least one direction is uniform on the unit sphere of all D entries",
    )
    breaks_when: ClassVar[str] = "Training has aligned the weights, or the feedback is sparse, of low rank or tied."
    effect: ClassVar[float] = 0.01

    @classmethod
    def quick(cls, *, dtype: jax.typing.DTypeLike = float) -> "AlignmentLaw":
        """A hundred thousand planes per dimension."""
        return cls._build(dtype, matrices=False, batch=1000, replicates=100)

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "AlignmentLaw":
        """A hundred thousand Gaussian feedback matrices per dimension."""
        return cls._build(dtype, matrices=True, batch=100, replicates=1000)

    @classmethod
    def _build(cls, dtype, *, matrices: bool, batch: int, replicates: int) -> "AlignmentLaw":
        dimensions = jnp.asarray([math.prod(shape) for shape in SHAPES], dtype)
        return cls(
            dimensions=dimensions,
            dimension_ratio=jnp.ones((), dtype),
            matrices=matrices,
            batch=batch,
            replicates=replicates,
        )

    def grid(self) -> Float[Array, " panel"]:
        """The dimensions."""
        return self.dimensions

    def predict(self, grid: Float[Array, " panel"]) -> dict[str, Law]:
        """The Beta law, one member of the panel per dimension."""
        law = SquaredCosineLaw(grid * self.dimension_ratio)
        mean, variance = (jnp.asarray(moment, self.dtype) for moment in (law.mean, law.variance))
        return {"squared_cosine": Law(eqx.Partial(_cdf, law), mean, variance)}

    def sample(self, grid: Float[Array, " panel"], *, key: Key) -> dict[str, Samples]:
        """Squared cosines of ``batch`` draws for each dimension."""
        if self.matrices:
            return {"squared_cosine": Samples(self._from_matrices(key))}
        return {"squared_cosine": Samples(draw_squared_cosines(grid, self.batch, key=key))}

    def _from_matrices(self, key: Key) -> Float[Array, "draws panel"]:
        sizes = [math.prod(shape) for shape in SHAPES]
        entries = jax.random.normal(key, ((self.batch + 1) * sum(sizes),), self.dtype).reshape(self.batch + 1, -1)
        pieces = jnp.split(entries, list(accumulate(sizes))[:-1], axis=1)
        matrices = [piece.reshape(-1, *shape) for piece, shape in zip(pieces, SHAPES, strict=True)]
        columns = [jax.vmap(alignment, (None, 0))(layer[0], layer[1:]) for layer in matrices]
        return jnp.stack(columns, axis=1)

    def counterfeit(self) -> "AlignmentLaw":
        """Ten percent too few dimensions."""
        return eqx.tree_at(lambda theory: theory.dimension_ratio, self, 0.9 * self.dimension_ratio)


def _cdf(law: SquaredCosineLaw, squared_cosine: ArrayLike) -> Array:
    return jnp.asarray(law.cdf(squared_cosine))
