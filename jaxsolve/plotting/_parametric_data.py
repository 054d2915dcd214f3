"""What the figure of a parametric equation shows, as arrays."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import ArrayLike
from ..certificates import energy_norm
from ..pde import ParametricDiffusion, ellipticity_certificate
from ..solver import trajectory


class CertifiedErrors(NamedTuple):
    """Errors of the mean operator's inverse on tasks of a parametric equation, and what bounds them beforehand.

    Attributes
    ----------
    errors
        `‖e_l‖_{A(z)} / ‖e_0‖_{A(z)}` at depths `0, …, L`.
    contraction
        `ρ` of [`jaxsolve.pde.ellipticity_certificate`][]: each error is at most `ρ^l`.
    """

    errors: Float[np.ndarray, "iterates tasks"]
    contraction: float

    @property
    def bound(self) -> Float[np.ndarray, " iterates"]:
        """`ρ^l`."""
        return self.contraction ** np.arange(len(self.errors))


def certified_errors(
    family: ParametricDiffusion,
    parameters: Float[ArrayLike, "tasks parameters"],
    initial_errors: Float[ArrayLike, "tasks size"],
    *,
    depth: int,
) -> CertifiedErrors:
    """The iteration with `P = τ A_0^{-1}` and the step `τ` of the certificate of the box `|z_k| ≤ 1`.

    Raises
    ------
    ValueError
        Where a coefficient, of a task or in the box, is not positive.

    >>> from jaxsolve.pde import interval_grid
    >>> family = ParametricDiffusion(interval_grid(3), np.full((1, 4), 0.5))
    >>> data = certified_errors(family, np.array([[1.0]]), np.ones((1, 3)), depth=2)
    >>> np.round(data.errors[:, 0], 12).tolist(), data.bound.tolist()
    ([1.0, 0.5, 0.25], [1.0, 0.5, 0.25])
    """
    certificate = ellipticity_certificate(family)
    operators = family.operators(jnp.asarray(parameters, family.modes.dtype))
    start = jnp.asarray(initial_errors, operators.dtype)
    preconditioner = certificate.step * jnp.linalg.inv(family.mean_operator)
    errors = trajectory(preconditioner, operators, jnp.zeros_like(start), start, depth=depth)
    norms = np.asarray(energy_norm(operators, errors), float)
    return CertifiedErrors(norms / norms[:1], float(certificate.contraction))
