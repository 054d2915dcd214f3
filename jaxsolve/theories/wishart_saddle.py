"""The best preconditioner for isotropic Wishart tasks is a saddle, four steps deep, towards antisymmetric matrices."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..curves import isotropic_wishart_hessian, second_variation, wishart_best_gain, wishart_second_variations
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..solver import wishart_operators


class WishartSaddle(AbstractTheory):
    """`d²/dε² 𝓛(p I + ε X)` at the best gain `p`: positive for symmetric `X`, negative for antisymmetric `X`.

    Multiples of the identity are invariant under training for isotropic Wishart tasks, and the best of them is a
    stationary point of the population loss among all matrices. Its second variations are exact at any size
    ([`jaxsolve.curves.wishart_second_variations`][]); here for 8 unknowns, four steps of the decoder, and 4 and 8
    times as many degrees of freedom. The point is a minimum among symmetric matrices and a saddle towards antisymmetric
    ones: descent that starts on a multiple of the identity rests there, and any antisymmetric disturbance grows.

    The measurement differentiates the loss of random tasks twice along one matrix of each kind, normalised to
    `‖X‖² = K`: a pairing of the unknowns, and alternating signs on the diagonal.

    The counterfeit takes the limit of many unknowns at the same ratio of size and degrees of freedom.

    Attributes
    ----------
    gains
        `p`, one for each number of degrees of freedom.
    freedoms
        `n`, static.
    limit
        Whether the prediction is that of many unknowns.
    """

    gains: Float[Array, " points"]
    size: int = eqx.field(static=True)
    freedoms: tuple[int, ...] = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    tasks: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True)
    limit: bool = eqx.field(static=True, default=False)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@book{mingo2017free,
  author = {Mingo, James A. and Speicher, Roland},
  title = {Free Probability and Random Matrices},
  publisher = {Springer},
  year = {2017},
}"""
    statement: ClassVar[str] = (
        "For isotropic Wishart tasks of eight unknowns and a decoder of four steps, the second variation of the "
        "population loss (half the mean square error over unknowns) at the best multiple of the identity is positive "
        "along symmetric matrices without trace and negative along antisymmetric ones, with values known exactly."
    )
    observables: ClassVar[tuple[str, ...]] = ("antisymmetric", "symmetric")
    assumptions: ClassVar[tuple[str, ...]] = (
        "Gaussian vectors behind the operators, isotropic",
        "an isotropic first error",
    )
    breaks_when: ClassVar[str] = (
        "Fewer than about three degrees of freedom per unknown: the antisymmetric value is positive, a minimum."
    )
    effect: ClassVar[float] = 0.1

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 8,
        freedoms: tuple[int, ...] = (32, 64),
        depth: int = 4,
        tasks: int = 400,
        replicates: int = 100,
    ) -> "WishartSaddle":
        """Eight unknowns, 40 000 tasks of each number of degrees of freedom."""
        gains = [wishart_best_gain(size=size, freedom=freedom, depth=depth) for freedom in freedoms]
        return cls(
            gains=jnp.asarray(gains, dtype),
            size=size,
            freedoms=freedoms,
            depth=depth,
            tasks=tasks,
            replicates=replicates,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, replicates: int = 1000, **options) -> "WishartSaddle":
        """400 000 tasks of each number of degrees of freedom; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, replicates=replicates, **options)

    def grid(self) -> Float[Array, " points"]:
        """Degrees of freedom."""
        return jnp.asarray(self.freedoms, self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The exact values."""
        pairs = np.array([self._exact(freedom) for freedom in self.freedoms])
        return {name: Curve(grid, jnp.asarray(pairs[:, i], self.dtype)) for i, name in enumerate(self.observables)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Second derivatives of the loss of random tasks."""
        keys = jax.random.split(key, len(self.freedoms))
        values = [
            self._measured(freedom, gain, key)
            for freedom, gain, key in zip(self.freedoms, self.gains, keys, strict=True)
        ]
        return {name: Curve(grid, jnp.stack([pair[i] for pair in values])) for i, name in enumerate(self.observables)}

    def counterfeit(self) -> "WishartSaddle":
        """The limit of many unknowns."""
        return dataclasses.replace(self, limit=True)

    def _exact(self, freedom):
        if self.limit:
            hessian = isotropic_wishart_hessian(jnp.asarray(self.size / freedom, self.dtype), depth=self.depth)
            return float(hessian.own - hessian.coupling), float(hessian.own + hessian.coupling)
        found = wishart_second_variations(size=self.size, freedom=freedom, depth=self.depth)
        return found.antisymmetric, found.symmetric

    def _measured(self, freedom, gain, key):
        entries = jax.random.normal(key, (self.tasks * self.size * freedom,), self.dtype)
        entries = entries.reshape(self.tasks, self.size, freedom)
        operators = wishart_operators(entries, jnp.ones(self.size, self.dtype))
        identity, half = jnp.eye(self.size, dtype=self.dtype), np.eye(self.size // 2)
        directions = np.kron(half, np.array([[0, 1], [-1, 0]])), np.kron(half, np.diag([1, -1]))

        def mean(direction):
            matrix = jnp.asarray(direction, self.dtype)
            return jnp.mean(second_variation(gain * identity, matrix, operators, identity, depth=self.depth))

        return [mean(direction) for direction in directions]
