"""A minimax value estimated from draws is biased to the edge of the Marchenko–Pastur law."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, LimitRule
from ..feedback import IsotropicFeedback, finite_sample_coverage


class MinimaxEdge(AbstractTheory):
    """`D λ_min(1/n Σ b bᵀ) → (1 − √(D/n))²` for `n` isotropic draws at fixed `n/D`, with an error as `D^{−2/3}`.

    Not 1, which would be the minimax value: the second moment of a sample is as far from that of the law as the ratio
    of dimensions to draws says. The exponent is that of the fluctuations at the edge of the spectrum, whose mean is
    not zero.

    Terms of order `1/D` come besides, and without them the slope at the sizes here is near −0.8. The prediction holds
    them: `(1 − √c)² (1 + 5 √c / (2 D))` with `c = D/n`. Of the five halves, one is the distance of the centre of the
    fluctuations from the edge, `(√(n − ½) − √(D − ½))²` in place of `(√n − √D)²`. The other four come from the unit
    length of directions: a Gaussian vector is a direction with a random weight of variance `2/D`, and such weights
    lower the edge, that of `z(m) = −1/m + E[τ / (1 + c τ m)]` over weights `τ`, by `2 √c (1 − √c)² / D`.

    The counterfeit leaves the bias out and predicts the minimax value.

    Attributes
    ----------
    draw_factor
        What the prediction multiplies the number of draws with: 1.
    sizes, ratio
        `D`, rising, each a multiple of 4, and `n/D`.
    """

    dimensions: Float[Array, " points"]
    draw_factor: Float[Array, ""]
    sizes: tuple[int, ...] = eqx.field(static=True)
    replicates: int = eqx.field(static=True)
    ratio: int = eqx.field(static=True, default=4)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=-2 / 3, band=0.2)
    source: ClassVar[str] = """@article{marchenko1967distribution,
  author = {Marchenko, V. A. and Pastur, L. A.},
  title = {Distribution of eigenvalues for some sets of random matrices},
  journal = {Mathematics of the USSR-Sbornik},
  volume = {1},
  pages = {457--483},
  year = {1967},
}"""
    statement: ClassVar[str] = (
        "The smallest eigenvalue of the second moment of n isotropic unit directions, times D, tends to "
        "(1 - sqrt(D/n))^2 at a fixed ratio of n to D, with an error of order D^(-2/3); it is 1 only for infinitely "
        "many draws."
    )
    observables: ClassVar[tuple[str, ...]] = ("smallest_eigenvalue",)
    assumptions: ClassVar[tuple[str, ...]] = ("independent isotropic draws", "more draws than dimensions")
    breaks_when: ClassVar[str] = "The draws are fewer than the dimensions: the smallest eigenvalue is then zero."
    effect: ClassVar[float] = 0.3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        sizes: tuple[int, ...] = (16, 32, 64, 128),
        replicates: int = 300,
    ) -> "MinimaxEdge":
        """Dimensions 16 to 128, four draws per dimension, 300 second moments each."""
        return cls(
            dimensions=jnp.asarray(sizes, dtype),
            draw_factor=jnp.ones((), dtype),
            sizes=sizes,
            replicates=replicates,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "MinimaxEdge":
        """Dimensions 16 to 256, 500 second moments each."""
        return cls.quick(dtype=dtype, sizes=(16, 32, 64, 128, 256), replicates=500)

    def grid(self) -> Float[Array, " points"]:
        """The dimensions."""
        return self.dimensions

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The lower edge with its terms of order `1/D`."""
        factor = float(self.draw_factor)
        edges = []
        for size in self.sizes:
            draws = round(factor * self.ratio * size)
            correction = 2.5 * (size / draws) ** 0.5 / size
            edges.append(size * finite_sample_coverage(size, draws) * (1 + correction))
        return {"smallest_eigenvalue": Curve(grid, jnp.asarray(edges, self.dtype))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """One second moment at each dimension; a smaller one takes a part of the random numbers."""
        largest = self.sizes[-1]
        shape = (self.ratio * largest, largest)
        noise = jax.random.normal(key, (shape[0] * shape[1],), self.dtype).reshape(shape)
        moments = jnp.stack([self._second_moment(noise[: self.ratio * size, :size]) for size in self.sizes])
        return {"smallest_eigenvalue": Curve(grid, jnp.linalg.eigvalsh(moments)[:, 0])}

    def _second_moment(self, noise):
        """Times `D`, and filled up with twos to the largest size: one call then finds all eigenvalues."""
        draws, size = noise.shape
        directions = jax.vmap(IsotropicFeedback((4, size // 4)).from_noise)(noise).reshape(draws, size)
        moment = jnp.matmul(directions.T, directions, precision="highest") * size / draws
        return (2 * jnp.eye(self.sizes[-1], dtype=self.dtype)).at[:size, :size].set(moment)

    def counterfeit(self) -> "MinimaxEdge":
        """As many draws as to leave no bias."""
        return eqx.tree_at(lambda theory: theory.draw_factor, self, 1e9 * self.draw_factor)
