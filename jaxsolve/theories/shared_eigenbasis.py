"""Tasks that share their eigenvectors train a preconditioner mode by mode."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..curves import commuting_descent, population_descent
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind

INSTANCE_SEED = 52


class SharedEigenbasis(AbstractTheory):
    """`p_k ← p_k + η (L/K) s_k E[h_k (1 − p_k h_k)^{2L−1}]`, one scalar per mode, at any depth.

    The tasks are `H = U diag(h) Uᵀ`; `S` and the start have the same eigenvectors `U`. The dynamics need no more than
    the moments of each `h_k` up to order `2 L`: how modes depend on each other does not enter. The prediction therefore
    runs on eigenvalues that are shuffled between the tasks in each mode.

    The subspace is invariant, not attracting: [`jaxsolve.theories.commuting_saddle`][] tells where it is a saddle.

    The counterfeit takes the factor `L` of the gradient for half its exponent, `L − 1/2`.

    Attributes
    ----------
    eigenvalues
        `h`, one row per task.
    shuffled
        The same in each column, in another order.
    rate_factor
        1; what the prediction multiplies the gradient by, static.
    """

    eigenvectors: Float[Array, "size size"]
    eigenvalues: Float[Array, "tasks size"]
    shuffled: Float[Array, "tasks size"]
    second_moments: Float[Array, " size"]
    initial: Float[Array, " size"]
    learning_rate: Scalar
    depth: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    rate_factor: float = eqx.field(static=True, default=1.0)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=1024.0)
    source: ClassVar[str] = """@misc{solver-training,
  title = {Training dynamics of a transformer that learns a preconditioner},
  note = {source document 000, on a closed law for the joint state}
}"""
    statement: ClassVar[str] = (
        "Where operators, start and second moment of the first error share their eigenvectors, descent on all entries "
        "of the preconditioner for the population loss (half the mean square over unknowns) is one scalar recursion "
        "per mode."
    )
    observables: ClassVar[tuple[str, ...]] = ("preconditioner",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "operators, start and second moment that commute",
        "first errors independent of the operators",
    )
    breaks_when: ClassVar[str] = (
        "The start has entries off the diagonal in the common eigenvectors; where that point is a saddle they grow."
    )
    effect: ClassVar[float] = 1e-3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 6,
        tasks: int = 20,
        depth: int = 6,
        steps: int = 200,
        learning_rate: float = 0.5,
        instance_seed: int = INSTANCE_SEED,
    ) -> "SharedEigenbasis":
        """20 tasks of six unknowns, six steps of the decoder, 200 of training."""
        random = np.random.default_rng(instance_seed)
        rotation, _ = np.linalg.qr(random.standard_normal((size, size)))
        eigenvalues = random.uniform(0.2, 1.2, (tasks, size))
        second, start = random.uniform(0.5, 2.0, size), random.uniform(0.2, 0.5, size)
        return cls(
            eigenvectors=jnp.asarray(rotation, dtype),
            eigenvalues=jnp.asarray(eigenvalues, dtype),
            shuffled=jnp.asarray(random.permuted(eigenvalues, axis=0), dtype),
            second_moments=jnp.asarray(second, dtype),
            initial=jnp.asarray(start, dtype),
            learning_rate=jnp.asarray(learning_rate, dtype),
            depth=depth,
            steps=steps,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, size: int = 12, tasks: int = 200, **options):
        """200 tasks of 12 unknowns; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, size=size, tasks=tasks, **options)

    def grid(self) -> Float[Array, " points"]:
        """Training steps."""
        return jnp.asarray([1, 5, 20, 50, self.steps], self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The recursion of the gains, put back into the eigenvectors."""
        gains = commuting_descent(
            self.initial,
            self.shuffled,
            self.second_moments,
            depth=self.depth,
            learning_rate=self.rate_factor * self.learning_rate,
            steps=self.steps,
        )
        return {"preconditioner": Curve(grid, self._rotated(gains[grid.astype(int)]))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Descent on all entries."""
        del key
        states = population_descent(
            self._rotated(self.initial[None])[0],
            self._rotated(self.eigenvalues),
            self._rotated(self.second_moments[None])[0],
            depth=self.depth,
            learning_rate=self.learning_rate,
            steps=self.steps,
        )
        return {"preconditioner": Curve(grid, states[grid.astype(int)])}

    def counterfeit(self) -> "SharedEigenbasis":
        """The factor `L` of the gradient is `L − 1/2`."""
        return dataclasses.replace(self, rate_factor=1 - 0.5 / self.depth)

    def _rotated(self, diagonals: Float[Array, "rows size"]) -> Float[Array, "rows size size"]:
        vectors = self.eigenvectors
        return jnp.einsum("ik,tk,jk->tij", vectors, diagonals, vectors, precision="highest")
