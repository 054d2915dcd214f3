"""The best preconditioner for isotropic Wishart tasks is a saddle, four steps deep, towards antisymmetric matrices."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..curves import isotropic_wishart_hessian, second_variation
from ..evidence import AbstractTheory, Curve, Kind, LimitRule
from ..solver import wishart_operators


class WishartSaddle(AbstractTheory):
    """`d²/dε² 𝓛(p I + ε X) → A − B < 0` for antisymmetric `X` with `‖X‖² = K`, at the best gain `p` and depth 4.

    By symmetry, multiples of the identity are invariant under training for isotropic Wishart tasks, and the best of
    them is a stationary point of the population loss among all matrices. In the limit `K/n → c` it lies at
    `p = 1/(1 + c)`, and the second variations are those of [`jaxsolve.curves.isotropic_wishart_hessian`][]. At depth 4
    the point is a minimum among symmetric matrices and a saddle where `c < 0.56`; at depth 3 where `c < 0.17`; at depth
    2 nowhere. Here `c = 1/4`.

    The measurement differentiates the loss of random tasks twice along one antisymmetric matrix, a pairing of the
    unknowns. The law of the tasks is invariant under rotations, so any other gives the same mean.

    The counterfeit has a coupling `B` that is 10 % too small.

    Attributes
    ----------
    gain
        `p`, where the second variation is taken.
    freedom_ratio
        `1/c`, static.
    coupling_factor
        1; what the prediction multiplies `B` by.
    """

    gain: Scalar
    coupling_factor: Scalar
    sizes: tuple[int, ...] = eqx.field(static=True)
    freedom_ratio: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    tasks: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=-1.0, band=0.25)
    source: ClassVar[str] = """@book{mingo2017free,
  author = {Mingo, James A. and Speicher, Roland},
  title = {Free Probability and Random Matrices},
  publisher = {Springer},
  year = {2017},
}"""
    statement: ClassVar[str] = (
        "For isotropic Wishart tasks with four times as many degrees of freedom as unknowns K, the second variation of "
        "the population loss (half the mean square error over unknowns) of a decoder of four steps, at the best "
        "multiple of the identity and along an antisymmetric matrix, is negative and differs from its limit by an "
        "error that falls as 1/K."
    )
    observables: ClassVar[tuple[str, ...]] = ("antisymmetric",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "Gaussian vectors behind the operators, isotropic",
        "an isotropic first error",
        "size and degrees of freedom that grow in proportion",
    )
    breaks_when: ClassVar[str] = "A few unknowns: at K = 4 the best multiple of the identity is a minimum."
    effect: ClassVar[float] = 0.4

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        sizes: tuple[int, ...] = (8, 16, 32),
        freedom_ratio: int = 4,
        depth: int = 4,
        tasks: int = 40,
        replicates: int = 100,
    ) -> "WishartSaddle":
        """Sizes 8, 16 and 32, 4000 tasks of each."""
        return cls(
            gain=jnp.asarray(freedom_ratio / (1 + freedom_ratio), dtype),
            coupling_factor=jnp.asarray(1.0, dtype),
            sizes=sizes,
            freedom_ratio=freedom_ratio,
            depth=depth,
            tasks=tasks,
            replicates=replicates,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, replicates: int = 500, **options) -> "WishartSaddle":
        """20 000 tasks of each size; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, replicates=replicates, **options)

    def grid(self) -> Float[Array, " points"]:
        """The sizes `K`, even."""
        return jnp.asarray(self.sizes, self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The limit, the same at every size."""
        hessian = isotropic_wishart_hessian(jnp.asarray(1 / self.freedom_ratio, self.dtype), depth=self.depth)
        return {"antisymmetric": Curve(grid, jnp.full_like(grid, hessian.own - self.coupling_factor * hessian.coupling))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Second derivatives of the loss of random tasks."""
        keys = jax.random.split(key, len(self.sizes))
        values = [self._measured(size, key) for size, key in zip(self.sizes, keys, strict=True)]
        return {"antisymmetric": Curve(grid, jnp.stack(values))}

    def counterfeit(self) -> "WishartSaddle":
        """The coupling is 10 % too small."""
        return eqx.tree_at(lambda theory: theory.coupling_factor, self, 0.9 * self.coupling_factor)

    def _measured(self, size, key):
        freedom = self.freedom_ratio * size
        entries = jax.random.normal(key, (self.tasks * size * freedom,), self.dtype)
        operators = wishart_operators(entries.reshape(self.tasks, size, freedom), jnp.ones(size, self.dtype))
        pairing = jnp.asarray(np.kron(np.eye(size // 2), np.array([[0, 1], [-1, 0]])), self.dtype)
        identity = jnp.eye(size, dtype=self.dtype)
        return jnp.mean(second_variation(self.gain * identity, pairing, operators, identity, depth=self.depth))
