"""Random diffusion problems."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._montecarlo import draws
from .._types import ArrayLike, Key, Scalar
from ._assembly import GalerkinAssembler, stiffness_assembler
from ._mesh import TriangleMesh


class LogNormalCoefficients(eqx.Module):
    """A random positive coefficient for each cell, `log a_c ~ N(0, σ²)`.

    Without a correlation length the cells are independent. With one, of length `ℓ`, the logarithm is a Gaussian field
    at the cell centres `x_c` with covariance

        Cov(log a_c, log a_d) = σ² (exp(−|x_c − x_d|² / (2 ℓ²)) + jitter [c = d]) / (1 + jitter),

    whose Cholesky factor is computed once, in float64.

    Parameters
    ----------
    centres
        One point per cell.
    sigma
        Standard deviation `σ` of `log a`.
    correlation_length
        `ℓ`, in the units of the centres, or ``None``.
    jitter
        Added to the diagonal, which the squared-exponential covariance needs to be positive definite in floating
        point.
    dtype
        Of the coefficients.

    Attributes
    ----------
    sigma
        `σ`.
    factor
        Lower Cholesky factor of the correlation matrix, ``None`` for independent cells.
    cells
        Their number.

    Raises
    ------
    ValueError
        For centres that are not rows of coordinates, a negative or infinite ``sigma``, a correlation length that is
        not positive, and a covariance that is not positive definite with this ``jitter``.
    """

    sigma: Scalar
    factor: Float[Array, "cells cells"] | None
    cells: int = eqx.field(static=True)

    def __init__(
        self,
        centres: Float[ArrayLike, "cells dimension"],
        *,
        sigma: float,
        correlation_length: float | None = None,
        jitter: float = 1e-10,
        dtype: jax.typing.DTypeLike = float,
    ):
        points = np.asarray(centres, float)
        if points.ndim != 2:
            raise ValueError(f"Centres have shape (cells, dimension); got {points.shape}.")
        if not 0 <= sigma < np.inf:
            raise ValueError(f"sigma is a standard deviation, finite and at least 0; got {sigma}.")
        self.sigma = jnp.asarray(sigma, dtype)
        self.cells = len(points)
        self.factor = None
        if correlation_length is None:
            return
        if not 0 < correlation_length < np.inf:
            raise ValueError(
                f"A correlation length is positive and finite; got {correlation_length}. None gives independent cells."
            )
        distances = np.linalg.norm(points[:, None] - points[None, :], axis=2)
        correlation = np.exp(-((distances / correlation_length) ** 2) / 2) + jitter * np.eye(len(points))
        try:
            factor = np.linalg.cholesky(correlation / (1 + jitter))
        except np.linalg.LinAlgError:
            raise ValueError(
                f"The covariance of {len(points)} cells at correlation length {correlation_length} is not positive "
                f"definite in floating point with jitter={jitter}. Raise the jitter or shorten the length."
            ) from None
        self.factor = jnp.asarray(factor, dtype)

    def __call__(self, *, key: Key) -> Float[Array, " cells"]:
        """One coefficient."""
        field = jax.random.normal(key, (self.cells,), self.sigma.dtype)
        if self.factor is not None:
            field = jnp.matmul(self.factor, field, precision="highest")
        return jnp.exp(self.sigma * field)


class DiffusionFamily(eqx.Module):
    """Operators `A(a)` of random coefficients `a`.

    Raises
    ------
    ValueError
        Where assembler and coefficients do not have the same number of cells.
    """

    assembler: GalerkinAssembler
    coefficients: LogNormalCoefficients

    def __check_init__(self):
        cells = self.assembler.cell_matrices.shape[0]
        if cells != self.coefficients.cells:
            raise ValueError(
                f"Assembler and coefficients belong to one mesh; got {cells} and {self.coefficients.cells} cells."
            )

    def __call__(self, *, key: Key) -> Float[Array, "size size"]:
        """One operator."""
        return self.assembler.assemble(self.coefficients(key=key))

    def operators(self, tasks: int, *, key: Key) -> Float[Array, "tasks size size"]:
        """Independent operators; the first ones do not depend on how many are asked for.

        Raises
        ------
        ValueError
            For fewer than one task.
        """
        return draws(self, key, tasks)


def diffusion_family(
    mesh: TriangleMesh,
    *,
    sigma: float,
    correlation_length: float | None = None,
    dtype: jax.typing.DTypeLike = float,
) -> DiffusionFamily:
    """Diffusion on piecewise linear elements with a log-normal coefficient, constant on each triangle.

    The parameters are those of [`stiffness_assembler`][] and [`LogNormalCoefficients`][], which also say what is
    raised; cells are triangles, centred at their centroids.

    >>> import jax
    >>> from jaxsolve.datasets import airfoil_mesh
    >>> family = diffusion_family(TriangleMesh(*airfoil_mesh()), sigma=1.0)
    >>> family.operators(3, key=jax.random.key(0)).shape
    (3, 260, 260)
    """
    coefficients = LogNormalCoefficients(
        mesh.centroids, sigma=sigma, correlation_length=correlation_length, dtype=dtype
    )
    return DiffusionFamily(stiffness_assembler(mesh, dtype=dtype), coefficients)
