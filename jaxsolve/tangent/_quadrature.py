"""Stochastic Lanczos quadrature: traces of functions of a kernel from products with it."""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
from jax.core import Tracer
from jaxtyping import Array, Float
from matfree import decomp

from .._arguments import check_dtypes, checked_depth
from .._montecarlo import draws
from .._numerics import machine_epsilon
from .._results import RESULTS, first_failure, raise_failures
from .._types import Key, Scalar


class SpectralEstimate(NamedTuple):
    """A mean over probes, from [`SpectralQuadrature`][]."""

    value: Float[Array, "..."]
    standard_error: Float[Array, "..."]
    """Of the mean over probes. The error of a depth that is too small is not in it."""


class SpectralQuadrature(eqx.Module):
    """Nodes and weights that stand for the spectrum of a symmetric operator, one rule of quadrature per probe.

    For a probe `v` of norm 1, `Σ_j w_j f(θ_j)` is the Gauss quadrature of `v^T f(A) v`: exact for polynomials of degree
    up to `2 · depth − 1`, and for every function where the depth is the number of distinct eigenvalues that `v` sees.

    Made by [`lanczos_quadrature`][].

    Attributes
    ----------
    nodes
        `θ`, the eigenvalues of the tridiagonal matrices. Where a Krylov space ends before the depth, the rest repeats
        the first diagonal entry, without weight.
    weights
        `w`, not negative; the row of a probe adds up to 1.
    size
        Rows of the operator.
    """

    nodes: Float[Array, "probes depth"]
    weights: Float[Array, "probes depth"]
    size: int = eqx.field(static=True)

    def trace(self, function: Callable[[Array], Array], *, throw: bool = True) -> SpectralEstimate:
        """`tr f(A) = Σ_i f(λ_i)`, the sum of a function over all eigenvalues.

        Parameters
        ----------
        function
            `f`, of an array of shape ``(probes, depth)``, entry by entry; axes may be added at the end, for several
            functions at once.
        throw
            Raise where a value of the function is not finite, or return it.

        Raises
        ------
        ValueError
            For a function that returns another shape, and with ``throw`` where a node lies outside of its domain.
        """
        values = function(self.nodes)
        if values.shape[:2] != self.nodes.shape:
            raise ValueError(
                f"The function takes nodes of shape {self.nodes.shape} and returns as many values, with further axes "
                f"behind them if there are any; got shape {values.shape}."
            )
        if throw:
            outside = ~jnp.all(jnp.isfinite(values), axis=tuple(range(1, values.ndim)))
            values = raise_failures(values, first_failure((outside, RESULTS.outside_domain)), of="probes")
        means = self.size * jnp.einsum("pj,pj...->p...", self.weights, values, precision="highest")
        probes = len(self.nodes)
        return SpectralEstimate(jnp.mean(means, axis=0), jnp.std(means, axis=0, ddof=1) / math.sqrt(probes))

    def log_determinant(self, ridge: Scalar | float = 0.0, *, throw: bool = True) -> SpectralEstimate:
        """`log det(A + ridge) = Σ_i log(λ_i + ridge)`.

        Raises
        ------
        ValueError
            With ``throw``, where a node plus the ridge is not positive.
        """
        ridge = jnp.asarray(ridge, self.nodes.dtype)
        return self.trace(lambda nodes: jnp.log(nodes + ridge), throw=throw)

    def effective_dimension(self, ridge: Scalar | float, *, throw: bool = True) -> SpectralEstimate:
        """`tr A (A + ridge)^{−1} = Σ_i λ_i / (λ_i + ridge)`, the degrees of freedom of kernel ridge regression.

        Raises
        ------
        ValueError
            With ``throw``, where a node plus the ridge is zero.
        """
        ridge = jnp.asarray(ridge, self.nodes.dtype)
        return self.trace(lambda nodes: nodes / (nodes + ridge), throw=throw)

    def density(self, grid: Float[Array, " points"], *, width: Scalar | float) -> SpectralEstimate:
        """The spectral density, smoothed: `ρ(x) = Σ_i N(x; λ_i, width²) / size`, of integral 1 over all `x`.

        Parameters
        ----------
        grid
            Where the density is asked for.
        width
            Standard deviation of the normal density in the place of each eigenvalue. Details narrower than the
            distance between nodes are those of the quadrature, not of the spectrum: raise the depth with them.

        Raises
        ------
        ValueError
            For a grid of another dtype, and for a width that is known and not positive.
        """
        check_dtypes(nodes=self.nodes, grid=grid)
        if not isinstance(width, Tracer) and not width > 0:
            raise ValueError(f"width is the standard deviation of a normal density, above 0; got {width}.")
        width = jnp.asarray(width, self.nodes.dtype)

        def bells(nodes):
            distance = (grid[None, None, :] - nodes[:, :, None]) / width
            return jnp.exp(-(distance**2) / 2) / (math.sqrt(2 * math.pi) * width * self.size)

        return self.trace(bells)


def lanczos_quadrature(
    operator: lineax.AbstractLinearOperator, *, probes: int, depth: int, block: int = 8, throw: bool = True, key: Key
) -> SpectralQuadrature:
    """Stochastic Lanczos quadrature of a symmetric operator, from ``probes · depth`` products with it.

    Each probe is a vector of random signs, for which `E v^T f(A) v = tr f(A)` (Hutchinson, 1990), and starts a Lanczos
    iteration with full reorthogonalisation, whose tridiagonal matrix gives nodes and weights (Golub and Meurant, 1994;
    Ubaru, Chen and Saad, 2017). All functions of the spectrum are then had from these without another product. The
    iteration is that of matfree. Memory is ``block · depth`` vectors.

    The depth is right where doubling it changes an estimate by less than its standard error; with a depth that is the
    size of the operator the quadrature has no error of its own. It can be differentiated in reverse mode, as long as
    the iteration does not come to an end before the depth.

    Parameters
    ----------
    operator
        Symmetric and tagged so: [`operator`][] and [`empirical_operator`][] of backpropagation are. The kernel of
        another rule is not symmetric; its symmetric part `(K + K^T)/2` is
        ``lineax.TaggedLinearOperator((kernel + kernel.T) / 2, lineax.symmetric_tag)``.
    probes
        How many, at least 2; the standard error falls with the root of it. Probe `i` does not depend on it.
    depth
        Products per probe, from 1 to the size of the operator.
    block
        Probes side by side.
    throw
        Raise where the iteration finds the operator not finite or not symmetric; else its nodes are then NaN.
    key
        A typed key.

    Raises
    ------
    ValueError
        For an operator that is not tagged symmetric or does not act on one floating-point vector, for fewer than two
        probes, a depth out of range, and with ``throw`` as said there.

    >>> matrix = lineax.MatrixLinearOperator(jnp.diag(jnp.array([1.0, 2.0, 4.0])), lineax.symmetric_tag)
    >>> found = lanczos_quadrature(matrix, probes=4, depth=3, key=jax.random.key(0))
    >>> round(float(found.trace(jnp.square).value), 4), round(float(found.log_determinant().value / jnp.log(2)), 4)
    (21.0, 3.0)
    """
    size = checked_symmetric(operator)
    depth = checked_depth(depth)
    if not 1 <= depth <= size:
        raise ValueError(f"depth counts products per probe, from 1 to the size of the operator, {size}; got {depth}.")
    if probes < 2:
        raise ValueError(f"A standard error needs at least 2 probes; got {probes}.")
    matrices = draws(eqx.Partial(_projected, operator, depth), key, probes, block=block)
    found, flags = _quadrature(matrices, size)
    return raise_failures(found, flags, of="probes") if throw else found


def checked_symmetric(operator: lineax.AbstractLinearOperator) -> int:
    """The size of an operator on vectors that is tagged symmetric, else a ``ValueError``."""
    structure = operator.in_structure()
    vector = isinstance(structure, jax.ShapeDtypeStruct) and len(structure.shape) == 1 and structure.shape[0]
    if not vector or not jnp.issubdtype(structure.dtype, jnp.floating) or operator.out_structure() != structure:
        raise ValueError(
            "The operator takes one vector of floating-point numbers, not empty, to another of the same shape and "
            f"dtype; got {structure} and {operator.out_structure()}."
        )
    if not lineax.is_symmetric(operator):
        raise ValueError(
            "The operator is not tagged symmetric, and the Lanczos iteration is for symmetric operators alone. The "
            "tangent kernel of a rule other than backpropagation is not symmetric and has a complex spectrum: take "
            "its symmetric part, lineax.TaggedLinearOperator((kernel + kernel.T) / 2, lineax.symmetric_tag), and "
            "call it so."
        )
    return structure.shape[0]


def _projected(operator: lineax.AbstractLinearOperator, depth: int, *, key: Key) -> Float[Array, "depth depth"]:
    """`Q^T A Q` in the basis `Q` of the Krylov space of one probe.

    By the Arnoldi iteration: half of the numbers are then a check of the symmetry. The basis loses its orthogonality
    where products are rounded to fewer digits than the dtype has.
    """
    structure = operator.in_structure()
    probe = jax.random.rademacher(key, structure.shape, structure.dtype)
    with jax.default_matmul_precision("highest"):
        return decomp.hessenberg(depth, reortho="full")(operator.mv, probe).J_small  # pyright: ignore[reportReturnType]


@eqx.filter_jit
def _quadrature(matrices: Float[Array, "probes depth depth"], size: int) -> tuple[SpectralQuadrature, RESULTS]:
    depth, epsilon = matrices.shape[1], machine_epsilon(matrices.dtype)
    diagonal = jnp.diagonal(matrices, axis1=1, axis2=2)
    below = jnp.diagonal(matrices, offset=-1, axis1=1, axis2=2)
    scale = jnp.nanmax(jnp.abs(matrices), axis=(1, 2))
    goes_on = jnp.cumprod(below > size * epsilon * scale[:, None], axis=1, dtype=bool)
    alive = jnp.concatenate([jnp.ones_like(goes_on, shape=(len(matrices), 1)), goes_on], axis=1)

    diagonal, below = jnp.where(alive, diagonal, diagonal[:, :1]), jnp.where(goes_on, below, 0)
    place = jnp.arange(depth)
    tridiagonal = jnp.zeros_like(matrices).at[:, place, place].set(diagonal)
    tridiagonal = tridiagonal.at[:, place[1:], place[:-1]].set(below).at[:, place[:-1], place[1:]].set(below)

    both = alive[:, :, None] & alive[:, None, :]
    difference = jnp.where(both, jnp.abs(matrices - tridiagonal), 0)
    flags = first_failure(
        (~jnp.isfinite(diagonal[:, 0]), RESULTS.not_finite),
        (jnp.max(difference, axis=(1, 2)) > math.sqrt(epsilon) * scale, RESULTS.false_symmetry),
    )
    defined = jnp.asarray(flags == RESULTS.successful)
    nodes, vectors = jnp.linalg.eigh(jnp.where(defined[:, None, None], tridiagonal, 0), symmetrize_input=False)
    return SpectralQuadrature(jnp.where(defined[:, None], nodes, jnp.nan), vectors[:, 0, :] ** 2, size), flags
