"""The closed population loss of Wishart tasks is approached as one over the size."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..curves import wishart_loss
from ..evidence import AbstractTheory, Curve, Kind, LimitRule
from ..solver import wishart_operators


class WishartClosure(AbstractTheory):
    """The loss of anisotropic Wishart tasks at any depth tends to its deterministic equivalent as `1/K`.

    The tasks have covariance `Σ` from 0.1 to 1, spaced evenly in the logarithm, and `n = 4 K` degrees of freedom; they
    do not commute. `P` is diagonal in the eigenvectors of `Σ`, with gains `p = 0.3/σ + 0.3`, and `S = I`. Two losses
    are
    predicted by [`jaxsolve.curves.wishart_loss`][]: `E‖e_L‖²/(2K)` and `E[e_Lᵀ H e_L]/(2K)`, four steps deep. The
    measurement runs the decoder on random tasks, from all unit vectors of each task, so that only the operators are
    random.

    The counterfeit has 10 % too many degrees of freedom: its error does not vanish.

    Attributes
    ----------
    freedom_ratio
        `n/K`.
    freedom_factor
        1; what the prediction multiplies `n` by.
    """

    freedom_factor: Scalar
    sizes: tuple[int, ...] = eqx.field(static=True)
    freedom_ratio: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    tasks: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=-1.0, band=0.25)
    source: ClassVar[str] = """@book{couillet2022random,
  author = {Couillet, Romain and Liao, Zhenyu},
  title = {Random Matrix Methods for Machine Learning},
  publisher = {Cambridge University Press},
  year = {2022},
}"""
    statement: ClassVar[str] = (
        "For Wishart tasks with four times as many degrees of freedom as unknowns K, the population loss of a diagonal "
        "preconditioner (half the mean square error over unknowns, or half its mean energy) differs from its "
        "deterministic equivalent by an error that falls as 1/K."
    )
    observables: ClassVar[tuple[str, ...]] = ("euclidean", "energy")
    assumptions: ClassVar[tuple[str, ...]] = (
        "Gaussian vectors behind the operators",
        "a preconditioner and a second moment that are diagonal in the eigenvectors of the covariance",
        "size and degrees of freedom that grow in proportion",
    )
    breaks_when: ClassVar[str] = "Degrees of freedom below the size, with gains near the edge of stability."
    effect: ClassVar[float] = 0.3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        sizes: tuple[int, ...] = (4, 8, 16),
        freedom_ratio: int = 4,
        depth: int = 4,
        tasks: int = 205,
        replicates: int = 100,
    ) -> "WishartClosure":
        """Sizes 4, 8 and 16, 20 500 tasks of each."""
        return cls(
            freedom_factor=jnp.asarray(1.0, dtype),
            sizes=sizes,
            freedom_ratio=freedom_ratio,
            depth=depth,
            tasks=tasks,
            replicates=replicates,
        )

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, sizes: tuple[int, ...] = (8, 16, 32), **options
    ) -> "WishartClosure":
        """Sizes 8, 16 and 32; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, sizes=sizes, **options)

    def grid(self) -> Float[Array, " points"]:
        """The sizes `K`."""
        return jnp.asarray(self.sizes, self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The deterministic equivalents."""
        losses = {norm: jnp.stack([self._closed(size, norm) for size in self.sizes]) for norm in self.observables}
        return {norm: Curve(grid, loss) for norm, loss in losses.items()}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """The decoder on random tasks."""
        keys = jax.random.split(key, len(self.sizes))
        losses = [self._measured(size, key) for size, key in zip(self.sizes, keys, strict=True)]
        return {
            name: Curve(grid, jnp.stack(loss))
            for name, loss in zip(self.observables, zip(*losses, strict=True), strict=True)
        }

    def counterfeit(self) -> "WishartClosure":
        """10 % too many degrees of freedom."""
        return dataclasses.replace(self, freedom_factor=1.1 * self.freedom_factor)

    def _family(self, size):
        spectrum = np.logspace(-1, 0, size)
        return jnp.asarray(0.3 / spectrum + 0.3, self.dtype), jnp.asarray(spectrum, self.dtype)

    def _closed(self, size, norm):
        gains, spectrum = self._family(size)
        freedom = self.freedom_factor * self.freedom_ratio * size
        return wishart_loss(gains, spectrum, jnp.ones_like(gains), depth=self.depth, freedom=freedom, norm=norm)

    def _measured(self, size, key):
        gains, spectrum = self._family(size)
        freedom = self.freedom_ratio * size
        entries = jax.random.normal(key, (self.tasks * size * freedom,), self.dtype)
        operators = wishart_operators(entries.reshape(self.tasks, size, freedom), spectrum)
        iteration = jnp.eye(size, dtype=self.dtype)[None] - gains[None, :, None] * operators
        errors = jnp.broadcast_to(jnp.eye(size, dtype=self.dtype)[None], iteration.shape)
        for _ in range(self.depth):
            errors = jnp.matmul(iteration, errors, precision="highest")
        energy = jnp.sum(errors * jnp.matmul(operators, errors, precision="highest"), axis=(1, 2))
        return jnp.mean(jnp.sum(errors**2, axis=(1, 2))) / (2 * size), jnp.mean(energy) / (2 * size)
