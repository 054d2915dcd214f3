"""Under a law of tasks without preferred directions, training moves eigenvalues and leaves eigenvectors."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..curves import population_descent
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind

INSTANCE_SEED = 54


class FrozenEigenvectors(AbstractTheory):
    """If `g H gᵀ ~ H` for all rotations, a symmetric `P_0` keeps its eigenvectors, whatever they are, and `S = I`.

    The reflections that fix the eigenvectors of `P` leave both `P` and the law of the tasks unchanged. So they leave
    the gradient unchanged, which has the same eigenvectors. Eigenvalues do not evolve one by one: each enters the
    gradient of the others.

    In two dimensions a finite set of tasks stands for all rotations exactly. The loss is a polynomial of degree `2 L`
    in
    `H`, hence a trigonometric polynomial of degree `2 L` in twice the angle of its eigenvectors, and the mean over more
    than `2 L` equally spaced angles is that over all of them. The start has eigenvectors at an angle that is not among
    them. The prediction is descent on two eigenvalues, differentiated in the eigenvectors of the start; it turns the
    tasks by angles of its own. The measurement is descent on all entries.

    The counterfeit lets each eigenvalue evolve as if the other were equal to it.

    Attributes
    ----------
    spectra
        Eigenvalues of the tasks before rotation.
    initial
        Eigenvalues of the start.
    angle
        Of its eigenvectors.
    interacting
        Whether an eigenvalue sees the other in the prediction.
    """

    spectra: Float[Array, "spectra 2"]
    initial: Float[Array, " 2"]
    angle: Scalar
    learning_rate: Scalar
    depth: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    interacting: bool = eqx.field(static=True, default=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=1024.0)
    source: ClassVar[str] = """@misc{solver-training,
  title = {Training dynamics of a transformer that learns a preconditioner},
  note = {source document 000, on a closed law for the joint state}
}"""
    statement: ClassVar[str] = (
        "Where the law of the tasks is invariant under rotations and the first error isotropic, descent on all entries "
        "of a preconditioner with a symmetric start is descent on its eigenvalues, which interact; the eigenvectors "
        "stay as they are. Population loss: half the mean square over unknowns."
    )
    observables: ClassVar[tuple[str, ...]] = ("preconditioner",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "a law of tasks invariant under rotations",
        "a symmetric start",
        "an isotropic first error",
    )
    breaks_when: ClassVar[str] = (
        "The start has an antisymmetric part, which grows where the symmetric matrix is a saddle."
    )
    effect: ClassVar[float] = 1e-3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        depth: int = 4,
        spectra: int = 4,
        steps: int = 100,
        learning_rate: float = 0.2,
        angle: float = 0.4,
        instance_seed: int = INSTANCE_SEED,
    ) -> "FrozenEigenvectors":
        """Four spectra, four steps of the decoder, 100 of training."""
        drawn = np.random.default_rng(instance_seed).uniform(0.3, 1.3, (spectra, 2))
        return cls(
            spectra=jnp.asarray(drawn, dtype),
            initial=jnp.asarray([0.3, 0.9], dtype),
            angle=jnp.asarray(angle, dtype),
            learning_rate=jnp.asarray(learning_rate, dtype),
            depth=depth,
            steps=steps,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, depth: int = 8, spectra: int = 64, **options):
        """64 spectra, eight steps of the decoder; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, depth=depth, spectra=spectra, **options)

    def grid(self) -> Float[Array, " points"]:
        """Training steps."""
        return jnp.asarray([1, 5, 20, 50, self.steps], self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Descent on the eigenvalues."""
        path = _eigenvalues(self)[grid.astype(int)]
        vectors = _rotation(self.angle)
        return {"preconditioner": Curve(grid, jnp.einsum("ik,sk,jk->sij", vectors, path, vectors, precision="highest"))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Descent on all entries."""
        del key
        vectors = _rotation(self.angle)
        states = population_descent(
            jnp.einsum("ik,k,jk->ij", vectors, self.initial, vectors, precision="highest"),
            self._tasks(2 * self.depth + 2),
            jnp.eye(2, dtype=self.dtype),
            depth=self.depth,
            learning_rate=self.learning_rate,
            steps=self.steps,
        )
        return {"preconditioner": Curve(grid, states[grid.astype(int)])}

    def counterfeit(self) -> "FrozenEigenvectors":
        """Eigenvalues that do not interact."""
        return dataclasses.replace(self, interacting=False)

    def _tasks(self, angles: int) -> Float[Array, "tasks 2 2"]:
        vectors = jax.vmap(_rotation)(jnp.asarray(np.pi * np.arange(angles) / angles, self.dtype))
        return jnp.einsum("aik,sk,ajk->saij", vectors, self.spectra, vectors, precision="highest").reshape(-1, 2, 2)


def _rotation(angle):
    return jnp.stack([jnp.stack([jnp.cos(angle), -jnp.sin(angle)]), jnp.stack([jnp.sin(angle), jnp.cos(angle)])])


@eqx.filter_jit
def _eigenvalues(theory):
    tasks = theory._tasks(2 * theory.depth + 5)

    def loss(gains):
        matrix = jnp.eye(2, dtype=gains.dtype)[None] - gains[None, :, None] * tasks
        power = matrix
        for _ in range(theory.depth - 1):
            power = jnp.matmul(power, matrix, precision="highest")
        return jnp.mean(jnp.sum(power**2, axis=(1, 2))) / 4

    def slope(gains):
        if theory.interacting:
            return jax.grad(loss)(gains)
        return jax.vmap(lambda gain: jax.grad(lambda one: loss(jnp.stack([one, one])) / 2)(gain))(gains)

    def step(gains, _):
        following = gains - theory.learning_rate * slope(gains)
        return following, following

    return jnp.concatenate([theory.initial[None], jax.lax.scan(step, theory.initial, length=theory.steps)[1]])
