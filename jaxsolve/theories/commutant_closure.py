"""A preconditioner that shares a symmetry of the tasks trains by its coordinates in the commutant alone."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..curves import (
    AbstractSymmetry,
    CyclicSymmetry,
    OrthogonalSymmetry,
    SignSymmetry,
    commutant_descent,
    periodic_diffusion,
    population_descent,
)
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..solver import wishart_operators

INSTANCE_SEED = 53

SYMMETRIES: dict[str, type[AbstractSymmetry]] = {
    "sign": SignSymmetry,
    "cyclic": CyclicSymmetry,
    "orthogonal": OrthogonalSymmetry,
}


class CommutantClosure(AbstractTheory):
    """If `g H gᵀ ~ H` and `g S gᵀ = S` for orthogonal `g`, training closes on matrices with `g P gᵀ = P`.

    Then `𝓛(g P gᵀ) = 𝓛(P)`, the gradient is equivariant, and descent never leaves the commutant. Three groups:

    - ``sign``: changes of sign. Tasks are Wishart matrices of a diagonal covariance from 0.1 to 1 over `2 K` degrees of
      freedom; `P` stays diagonal, `K` numbers.
    - ``cyclic``: shifts. Tasks are diffusion operators on a ring with random coefficients; `P` stays circulant.
    - ``orthogonal``: isotropic Wishart tasks; `P` stays a multiple of the identity, one number.

    No two tasks commute. The prediction trains the coordinates on some tasks; the measurement trains all entries of `P`
    on the set of all images of these tasks under a finite group with the same commutant. A sample that is not
    symmetrised has none of the symmetries, and the counterfeit trains all entries of `P` on it.

    Attributes
    ----------
    operators
        Tasks for each group, before they are symmetrised.
    initial
        Coordinates of the start for each group.
    symmetrised
        Whether the prediction is that of the symmetric law.
    """

    operators: dict[str, Float[Array, "tasks size size"]]
    initial: dict[str, Float[Array, " _"]]
    learning_rate: Scalar
    depth: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    symmetrised: bool = eqx.field(static=True, default=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=1024.0)
    source: ClassVar[str] = """@misc{solver-training,
  title = {Training dynamics of a transformer that learns a preconditioner},
  note = {source document 000, on a closed law for the joint state}
}"""
    statement: ClassVar[str] = (
        "For a law of tasks that is invariant under changes of sign, cyclic shifts or rotations, descent on all "
        "entries of the preconditioner for the population loss (half the mean square over unknowns) is descent on "
        "diagonal matrices, circulant matrices or multiples of the identity."
    )
    observables: ClassVar[tuple[str, ...]] = ("sign", "cyclic", "orthogonal")
    assumptions: ClassVar[tuple[str, ...]] = (
        "a law of tasks with the symmetry, not a sample of it",
        "a start and a second moment of the first error with the symmetry",
    )
    breaks_when: ClassVar[str] = "The tasks are a finite sample: it does not have the symmetry of its law."
    effect: ClassVar[float] = 1e-3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 4,
        tasks: int = 6,
        depth: int = 4,
        steps: int = 100,
        learning_rate: float = 0.2,
        instance_seed: int = INSTANCE_SEED,
    ) -> "CommutantClosure":
        """Six tasks of four unknowns for each group, four steps of the decoder, 100 of training."""
        random = np.random.default_rng(instance_seed)
        factors = random.standard_normal((2, tasks, size, 2 * size))
        ring = periodic_diffusion(jnp.asarray(random.uniform(0.05, 0.4, (tasks, size)), dtype), reaction=0.2)
        operators = {
            "sign": jnp.asarray(wishart_operators(factors[0], np.logspace(-1, 0, size)), dtype),
            "cyclic": ring,
            "orthogonal": jnp.asarray(wishart_operators(factors[1], np.full(size, 0.5)), dtype),
        }
        drawn = random.uniform(0.2, 0.6, (2, size))
        initial = {"sign": drawn[0], "cyclic": np.append(0.5, 0.1 * drawn[1][1:]), "orthogonal": np.array([0.3])}
        return cls(
            operators=operators,
            initial={name: jnp.asarray(start, dtype) for name, start in initial.items()},
            learning_rate=jnp.asarray(learning_rate, dtype),
            depth=depth,
            steps=steps,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, size: int = 8, tasks: int = 12, **options):
        """12 tasks of eight unknowns; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, size=size, tasks=tasks, **options)

    def grid(self) -> Float[Array, " points"]:
        """Training steps."""
        return jnp.asarray([1, 5, 20, 50, self.steps], self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Descent on the coordinates."""
        return {name: Curve(grid, self._closed(name)[grid.astype(int)]) for name in self.observables}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Descent on all entries, for the symmetrised tasks."""
        del key

        def trained(name):
            operators = self._symmetry(name).symmetrise(self.operators[name])
            return population_descent(self._start(name), operators, self._moment(name), **self._training())

        return {name: Curve(grid, trained(name)[grid.astype(int)]) for name in self.observables}

    def counterfeit(self) -> "CommutantClosure":
        """The tasks are not symmetrised."""
        return dataclasses.replace(self, symmetrised=False)

    def _closed(self, name):
        arguments = (self.operators[name], self._moment(name))
        if not self.symmetrised:
            return population_descent(self._start(name), *arguments, **self._training())
        symmetry = self._symmetry(name)
        path = commutant_descent(symmetry, self.initial[name], *arguments, **self._training())
        return jax.vmap(symmetry.matrix)(path)

    def _symmetry(self, name) -> AbstractSymmetry:
        return SYMMETRIES[name](self.operators[name].shape[-1])

    def _start(self, name):
        return self._symmetry(name).matrix(self.initial[name])

    def _moment(self, name):
        return jnp.eye(self.operators[name].shape[-1], dtype=self.dtype)

    def _training(self):
        return {"depth": self.depth, "learning_rate": self.learning_rate, "steps": self.steps}
