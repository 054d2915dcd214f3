"""Stationary learnable-kernel attention trains one scalar per frequency on tasks without a preferred place."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..curves import CyclicSymmetry, periodic_diffusion
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..solver import population_loss

INSTANCE_SEED = 55


class StationaryAttention(AbstractTheory):
    """`a_f ← a_f − 2 η a_f w_f ⟨∇𝓛, C_f⟩` closes, with `P = Σ_f w_f a_f² C_f`, `C_f = cos(2π f (i − j)/K)`.

    Attention with a stationary kernel has the features `a_f cos` and `a_f sin` of the positions `i` of the unknowns on
    a
    ring, at the frequencies `f = 0, …, ⌊K/2⌋`, and no normalisation of rows. Its matrix is circulant, and so is the
    gradient for a law of tasks that is invariant under shifts. The tasks are diffusion operators with random
    coefficients, which do not commute. On a circulant `P` the derivative along `a_f` needs the overlap of the gradient
    with one mode, and one task of each orbit under shifts gives it.

    The prediction trains the amplitudes on these tasks through the eigenvalues of `P`, with the discrete Fourier
    transform; the measurement forms the features, differentiates the loss of all shifted tasks by JAX and trains
    queries and keys as they are.

    The counterfeit counts the two eigenvectors of a frequency once: the weight of `C_f` in the eigenvalues halves, save
    at `f = 0` and `K/2`.

    Attributes
    ----------
    amplitudes
        `a` at the start.
    kernel_weights
        `w`.
    """

    coefficients: Float[Array, "tasks size"]
    amplitudes: Float[Array, " frequencies"]
    kernel_weights: Float[Array, " frequencies"]
    learning_rate: Scalar
    depth: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    paired: bool = eqx.field(static=True, default=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=4096.0)
    source: ClassVar[str] = """@misc{zhang2026flexformer,
  author = {Zhang and Zhou},
  title = {Linear attention with trainable spectral frequencies},
  note = {arXiv:2606.27748; stationary features are those of the abstract},
  eprint = {2606.27748},
  archivePrefix = {arXiv},
}"""
    statement: ClassVar[str] = (
        "For stationary-kernel attention on the frequencies of a ring, and a law of tasks invariant under shifts, "
        "descent on the amplitudes for the population loss (half the mean square over unknowns) is one scalar "
        "recursion per frequency through the eigenvalues of the circulant preconditioner."
    )
    observables: ClassVar[tuple[str, ...]] = ("amplitudes", "preconditioner")
    assumptions: ClassVar[tuple[str, ...]] = (
        "frequencies of the discrete Fourier transform, not trained",
        "no normalisation of rows",
        "a law of tasks invariant under cyclic shifts",
    )
    breaks_when: ClassVar[str] = "Frequencies leave the grid: the matrix is no longer circulant."
    effect: ClassVar[float] = 1e-3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 6,
        tasks: int = 4,
        depth: int = 4,
        steps: int = 100,
        learning_rate: float = 0.1,
        instance_seed: int = INSTANCE_SEED,
    ) -> "StationaryAttention":
        """A ring of six unknowns, four tasks and their shifts."""
        random = np.random.default_rng(instance_seed)
        count = size // 2 + 1
        coefficients = random.uniform(0.05, 0.4, (tasks, size))
        amplitudes, kernel_weights = random.uniform(0.2, 0.5, count), random.uniform(0.5, 1.5, count)
        amplitudes *= (6 / size) ** 0.5  # eigenvalues of the preconditioner are of order size times squared amplitude
        return cls(
            coefficients=jnp.asarray(coefficients, dtype),
            amplitudes=jnp.asarray(amplitudes, dtype),
            kernel_weights=jnp.asarray(kernel_weights, dtype),
            learning_rate=jnp.asarray(learning_rate, dtype),
            depth=depth,
            steps=steps,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, size: int = 16, tasks: int = 12, **options):
        """A ring of 16 unknowns, 12 tasks and their shifts; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, size=size, tasks=tasks, **options)

    def grid(self) -> Float[Array, " points"]:
        """Training steps."""
        return jnp.asarray([1, 5, 20, 50, self.steps], self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The recursion through the eigenvalues."""
        path = _by_eigenvalues(self)[grid.astype(int)]
        matrices = jax.vmap(lambda amplitudes: self._circulant(self._eigenvalues(amplitudes)))(path)
        return {"amplitudes": Curve(grid, path), "preconditioner": Curve(grid, matrices)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Descent on the amplitudes of the features, all tasks and shifts."""
        del key
        size = self.coefficients.shape[1]
        operators = CyclicSymmetry(size).symmetrise(self._operators())
        angles = 2 * np.pi / size * np.arange(size)[:, None] * np.arange(self.amplitudes.size)[None, :]
        waves = jnp.asarray(np.concatenate([np.cos(angles), np.sin(angles)], axis=1), self.dtype)

        def matrix(amplitudes):
            features = waves * jnp.tile(jnp.sqrt(self.kernel_weights) * amplitudes, 2)[None, :]
            return jnp.matmul(features, features.T, precision="highest")

        def loss(amplitudes):
            return population_loss(matrix(amplitudes), operators, jnp.eye(size, dtype=self.dtype), depth=self.depth)

        def step(amplitudes, _):
            following = amplitudes - self.learning_rate * jax.grad(loss)(amplitudes)
            return following, following

        _, path = jax.lax.scan(step, self.amplitudes, length=self.steps)
        path = path[grid.astype(int) - 1]
        return {"amplitudes": Curve(grid, path), "preconditioner": Curve(grid, jax.vmap(matrix)(path))}

    def counterfeit(self) -> "StationaryAttention":
        """The two waves of a frequency share one eigenvector."""
        return dataclasses.replace(self, paired=False)

    def _operators(self):
        return periodic_diffusion(self.coefficients, reaction=0.2)

    def _eigenvalues(self, amplitudes):
        """Of `P`, one per frequency: `K/2`, and `K` at the ends, times `w a²`."""
        size = self.coefficients.shape[1]
        alone = np.isin(2 * np.arange(amplitudes.size) % size, 0)
        waves = jnp.asarray(np.where(alone, size, size / 2 if self.paired else size / 4), self.dtype)
        return waves * self.kernel_weights * amplitudes**2

    def _circulant(self, eigenvalues):
        size = self.coefficients.shape[1]
        row = jnp.fft.irfft(eigenvalues, size).astype(self.dtype)
        return row[jnp.asarray((np.arange(size)[None, :] - np.arange(size)[:, None]) % size)]


@eqx.filter_jit
def _by_eigenvalues(theory):
    operators = theory._operators()
    size = operators.shape[1]

    def loss(eigenvalues):
        matrix = jnp.eye(size, dtype=operators.dtype)[None] - jnp.matmul(
            theory._circulant(eigenvalues)[None], operators, precision="highest"
        )
        power = matrix
        for _ in range(theory.depth - 1):
            power = jnp.matmul(power, matrix, precision="highest")
        return jnp.mean(jnp.sum(power**2, axis=(1, 2))) / (2 * size)

    def step(amplitudes, _):
        slope = jax.grad(loss)(theory._eigenvalues(amplitudes))
        slope = slope * 2 * theory._eigenvalues(amplitudes) / amplitudes
        following = amplitudes - theory.learning_rate * slope
        return following, following

    path = jax.lax.scan(step, theory.amplitudes, length=theory.steps)[1]
    return jnp.concatenate([theory.amplitudes[None], path])
