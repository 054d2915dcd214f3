"""What the spectrum of a tangent kernel tells, and how far a kernel has moved."""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import lineax
import numpy as np
from jaxtyping import Array, Float

from .._numerics import machine_epsilon
from .._types import ArrayLike
from ._quadrature import checked_symmetric


@dataclass(frozen=True)
class SpectralEnds:
    """The largest and the smallest eigenvalue of a symmetric kernel, from [`extreme_eigenvalues`][]."""

    largest: float
    smallest: float
    """With its sign: below zero by rounding, or because the kernel is not positive semidefinite."""

    @property
    def condition(self) -> float:
        """`λ_max / λ_min`; infinite for a kernel that is not positive definite."""
        return self.largest / self.smallest if self.smallest > 0 else np.inf

    @property
    def stable_rate(self) -> float:
        """`2 / λ_max`, the end of the stable range of `η/N` in descent."""
        return 2 / self.largest if self.largest > 0 else np.inf


@dataclass(frozen=True)
class KernelSpectrum(SpectralEnds):
    """Of a symmetric kernel, from [`kernel_spectrum`][]."""

    trace: float
    rank: int | None
    """How many eigenvalues exceed `size · ε` times the largest modulus; ``None`` where not all are computed."""
    duplicates: tuple[tuple[int, int], ...]
    """Pairs of rows, the later one with the first it repeats: equal inputs make the kernel singular."""


def extreme_eigenvalues(operator: lineax.AbstractLinearOperator, *, tolerance: float = 0.0) -> SpectralEnds:
    """Both ends of the spectrum of a symmetric operator, by products with it alone.

    The Lanczos iteration of SciPy's ``eigsh`` on the host, in the precision of the operator. The smaller end takes many
    products where eigenvalues lie close to it.

    Parameters
    ----------
    operator
        Tagged symmetric, of size 3 or more: [`operator`][jaxsolve.tangent.operator] of backpropagation is.
    tolerance
        Relative error of the eigenvalues; 0 is the precision of the dtype.

    Raises
    ------
    ValueError
        For an operator that is not tagged symmetric, does not act on one vector, or is smaller than that, for products
        that are not finite, and for an iteration that does not converge.

    >>> matrix = lineax.MatrixLinearOperator(jnp.diag(jnp.array([1.0, 2.0, 4.0, 8.0])), lineax.symmetric_tag)
    >>> round(extreme_eigenvalues(matrix).condition, 6)
    8.0
    """
    size = checked_symmetric(operator)
    structure = operator.in_structure()
    product = eqx.filter_jit(operator.mv)

    def multiply(vector):
        found = np.asarray(product(jnp.asarray(vector.ravel(), structure.dtype)))
        if not np.isfinite(found).all():
            raise ValueError("The operator has products that are NaN or infinite. Look for the example they come from.")
        return found

    from scipy.sparse.linalg import LinearOperator

    wrapped = LinearOperator((size, size), matvec=multiply, dtype=structure.dtype)  # pyright: ignore[reportCallIssue]
    smallest, largest = _ends(wrapped, tolerance, "Raise the tolerance.")
    return SpectralEnds(largest, smallest)


def kernel_spectrum(kernel: Float[ArrayLike, "size size"], *, method: str = "dense") -> KernelSpectrum:
    """Ends of the spectrum, trace, numerical rank and repeated rows of a symmetric kernel.

    Runs on the host, in the precision of the kernel. Two rows count as repeated where
    `K_nn + K_mm − 2 K_nm = ‖J_n − J_m‖²` is at most `size · ε` times the largest diagonal entry; for a network with
    several outputs a pair of equal examples gives as many pairs of rows.

    Parameters
    ----------
    kernel
        Symmetric. For a rule other than backpropagation pass the symmetric part `(K + Kᵀ)/2`, which governs the loss
        to first order; it may be indefinite.
    method
        ``"dense"`` computes all eigenvalues. ``"lanczos"`` computes the two ends with SciPy's ``eigsh``, for large
        kernels: the smaller end takes long where many eigenvalues lie close to it, and the rank is not computed.

    Raises
    ------
    ValueError
        For a kernel that is not square, not finite or not symmetric, an unknown method, and a Lanczos iteration that
        does not converge.

    >>> spectrum = kernel_spectrum(jnp.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> round(spectrum.largest, 6), spectrum.trace, spectrum.rank, spectrum.duplicates
    (4.0, 5.0, 2, ((0, 1),))
    """
    matrix = np.asarray(kernel)
    if method not in ("dense", "lanczos"):
        raise ValueError(f"method is 'dense' or 'lanczos'; got {method!r}.")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"A kernel has shape (size, size), not empty; got {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise ValueError("The kernel has entries that are NaN or infinite. Look for the example they come from.")
    size, epsilon = matrix.shape[0], machine_epsilon(matrix.dtype)
    if np.abs(matrix - matrix.T).max() > 1e3 * epsilon * np.abs(matrix).max():
        raise ValueError(
            "The kernel is not symmetric: its spectrum is complex. Pass the symmetric part (K + K^T)/2 and call it so."
        )
    rank = None
    if method == "lanczos":
        smallest, largest = _ends(matrix, 0.0, "Take method='dense'.")
    else:
        import scipy.linalg

        values = scipy.linalg.eigvalsh(matrix)
        smallest, largest = float(values[0]), float(values[-1])
        rank = int((values > size * epsilon * np.abs(values).max()).sum())
    return KernelSpectrum(largest, smallest, float(np.trace(matrix)), rank, _repeated(matrix, size * epsilon))


def _ends(matrix, tolerance, remedy):
    from scipy.sparse.linalg import ArpackError, eigsh

    size = matrix.shape[0]
    if size < 3:
        raise ValueError(
            f"Lanczos iteration needs a size of 3 or more; got {size}. Take all eigenvalues of the matrix."
        )
    try:
        start = np.random.default_rng(0).standard_normal(size).astype(matrix.dtype)
        values = np.asarray(eigsh(matrix, k=2, which="BE", v0=start, tol=tolerance, return_eigenvectors=False))
    except ArpackError as failure:
        raise ValueError(f"The Lanczos iteration has failed: {failure} {remedy}") from failure
    return float(values.min()), float(values.max())


def _repeated(matrix, share):
    diagonal = np.diagonal(matrix)
    close = diagonal[:, None] + diagonal[None, :] - 2 * matrix <= share * diagonal.max()
    first = close.argmax(axis=1)
    return tuple((int(first[row]), row) for row in range(len(matrix)) if close[row].any() and first[row] < row)


class KernelDrift(NamedTuple):
    """Of kernels along training, from [`kernel_drift`][]."""

    relative_change: Float[Array, " snapshots"]
    """`‖K_s − K_0‖ / ‖K_0‖`."""
    alignment: Float[Array, " snapshots"]
    """`⟨K_s, K_0⟩ / (‖K_s‖ ‖K_0‖)`: the cosine, 1 for a kernel that only grows."""
    growth: Float[Array, " snapshots"]
    """`‖K_s‖ / ‖K_0‖`."""


def kernel_drift(snapshots: Float[Array, "snapshots size size"], start: Float[Array, "size size"]) -> KernelDrift:
    """How far kernels have moved from that of the start, in size and in direction; Frobenius norms throughout.

    With `c` the cosine and `g` the growth, the squared relative change is `1 + g² − 2 g c`: a kernel may change by
    turning, by growing, or both.

    Parameters
    ----------
    snapshots
        `K_s`, symmetric or not.
    start
        `K_0`, not zero.

    Raises
    ------
    ValueError
        Where the shapes or the dtypes do not fit.

    >>> drift = kernel_drift(jnp.array([[[2.0, 0.0], [0.0, 0.0]]]), jnp.array([[1.0, 0.0], [0.0, 0.0]]))
    >>> drift.relative_change.tolist(), drift.alignment.tolist(), drift.growth.tolist()
    ([1.0], [1.0], [2.0])
    """
    if start.ndim != 2 or snapshots.shape[1:] != start.shape or snapshots.dtype != start.dtype:
        raise ValueError(
            "kernel_drift takes snapshots (snapshots, size, size) and a start (size, size) of one dtype; got "
            f"{snapshots.shape} of {snapshots.dtype} and {start.shape} of {start.dtype}."
        )
    norm = jnp.linalg.norm(start)
    norms = jnp.sqrt((snapshots**2).sum(axis=(1, 2)))
    change = jnp.sqrt(((snapshots - start[None]) ** 2).sum(axis=(1, 2)))
    inner = jnp.einsum("sij,ij->s", snapshots, start, precision="highest")
    return KernelDrift(change / norm, inner / (norms * norm), norms / norm)
