"""Bounds on the error of a decoder with frozen preconditioner, at every depth and for every task."""

import abc
from functools import partial
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .._arguments import check_dtypes, checked_depth
from .._numerics import machine_epsilon
from .._results import RESULTS, first_failure, raise_failures
from ._shapes import check_tasks

Certificate = TypeVar("Certificate", bound="AbstractCertificate")


class AbstractCertificate(eqx.Module):
    """What is known of the iteration `e_{l+1} = (I − P H) e_l` of each task before it runs.

    Attributes
    ----------
    contracts
        Whether the rate of the task is below 1. A rate that is closer to 1 than `K ε (1 + ‖·‖)`, with the size `K`,
        the machine epsilon `ε` and the norm of the iteration matrix, is not counted as below.
    result
        One result per task. The bounds of a task that is not successful are NaN, which counts as a violation.
    """

    contracts: eqx.AbstractVar[Bool[Array, " tasks"]]
    result: eqx.AbstractVar[RESULTS]

    @property
    @abc.abstractmethod
    def rate(self) -> Float[Array, " tasks"]:
        """What has to be below 1."""


class ContractionCertificate(AbstractCertificate):
    """Bounds on `‖e_l‖₂`, from [`contraction_certificate`][].

    Attributes
    ----------
    spectral_radius
        `ρ(I − P H)`, the largest modulus of an eigenvalue. Errors of every start tend to zero if and only if it is
        below 1; it bounds no error at a given depth.
    spectral_norm
        `‖I − P H‖₂`.
    norm_bounds
        `‖I − P H‖₂^l ‖e_0‖₂` at depths `l = 0, …, L`.
    power_bounds
        `‖(I − P H)^l‖₂ ‖e_0‖₂` at the same depths: never above ``norm_bounds``.
    contracts
        Whether `ρ(I − P H) < 1`: the iteration is a contraction in some norm.
    result
        One result per task.
    """

    spectral_radius: Float[Array, " tasks"]
    spectral_norm: Float[Array, " tasks"]
    norm_bounds: Float[Array, "iterates tasks"]
    power_bounds: Float[Array, "iterates tasks"]
    contracts: Bool[Array, " tasks"]
    result: RESULTS

    @property
    def rate(self) -> Float[Array, " tasks"]:
        """``spectral_radius``."""
        return self.spectral_radius


class EnergyCertificate(AbstractCertificate):
    """Bounds on `‖e_l‖_H = (e_lᵀ H e_l)^{1/2}`, from [`energy_certificate`][].

    Attributes
    ----------
    energy_contraction
        `‖I − H^{1/2} P H^{1/2}‖₂`, the norm of `I − P H` as a map of energies. For a symmetric `P` this is
        `max |1 − eig(H^{1/2} P H^{1/2})|`, the spectral radius of `I − P H`.
    bounds
        `energy_contraction^l ‖e_0‖_H` at depths `l = 0, …, L`.
    contracts
        Whether ``energy_contraction`` is below 1. For a symmetric `P` errors tend to zero if and only if it is; for
        another `P`, if it is.
    result
        One result per task.
    """

    energy_contraction: Float[Array, " tasks"]
    bounds: Float[Array, "iterates tasks"]
    contracts: Bool[Array, " tasks"]
    result: RESULTS

    @property
    def rate(self) -> Float[Array, " tasks"]:
        """``energy_contraction``."""
        return self.energy_contraction


def contraction_certificate(
    preconditioner: Float[Array, "size size"] | Float[Array, "tasks size size"],
    operators: Float[Array, "tasks size size"],
    initial_errors: Float[Array, "tasks size"],
    *,
    depth: int,
    throw: bool = True,
) -> ContractionCertificate:
    """Bounds on the Euclidean norm of `e_l = (I − P H)^l e_0`, for any `P` and `H`.

    Two bounds are given at every depth, `‖I − P H‖₂^l ‖e_0‖₂` and `‖(I − P H)^l‖₂ ‖e_0‖₂`. Both hold whether the
    iteration converges or not. The first says nothing where the norm exceeds 1, which a preconditioner that is good
    in the end may well do; the second falls like the spectral radius then. It takes the singular values of each
    power, `L` per task. A power that overflows has an infinite bound.

    Parameters
    ----------
    preconditioner
        `P`, shared by all tasks or one per task.
    operators
        `H`.
    initial_errors
        `e_0 = z_0 − z*`; for a start at zero, `−z*`.
    depth
        `L`, static.
    throw
        Whether to raise where a task is not finite; otherwise ``result`` tells.

    Raises
    ------
    ValueError
        For a depth that is negative or not an integer, shapes that do not fit, dtypes that are not one floating
        dtype, and tasks with values that are NaN or infinite.

    Source: Saad, *Iterative Methods for Sparse Linear Systems*, SIAM 2003, section 4.2.

    >>> import jax.numpy as jnp
    >>> operators, errors = jnp.array([[[1.0, -8.0], [0.0, 1.0]]]), jnp.ones((1, 2))
    >>> certificate = contraction_certificate(0.5 * jnp.eye(2), operators, errors, depth=20)
    >>> [float(value[0].round(3)) for value in (certificate.spectral_radius, certificate.spectral_norm)]
    [0.5, 4.062]
    >>> bool(certificate.contracts[0]), bool(certificate.power_bounds[20, 0] < 1e-3)
    (True, True)
    """
    check_tasks(operators, {"preconditioner": preconditioner}, {"initial_errors": initial_errors})
    certificate = _contraction(preconditioner, operators, initial_errors, checked_depth(depth))
    return raise_failures(certificate, certificate.result, of="tasks") if throw else certificate


def energy_certificate(
    preconditioner: Float[Array, "size size"] | Float[Array, "tasks size size"],
    operators: Float[Array, "tasks size size"],
    initial_errors: Float[Array, "tasks size"],
    *,
    depth: int,
    throw: bool = True,
) -> EnergyCertificate:
    """Bounds on the energy norm of `e_l = (I − P H)^l e_0`, for symmetric positive definite `H` and any `P`.

    With `R = Λ^{1/2} Vᵀ` from `H = V Λ Vᵀ`, `R e_{l+1} = (I − R P Rᵀ) R e_l` and `‖e‖_H = ‖R e‖₂`, hence

        ‖e_l‖_H ≤ ‖I − R P Rᵀ‖₂^l ‖e_0‖_H.

    `R` and `H^{1/2}` differ by a rotation, which changes no norm. For a symmetric `P` the matrix is symmetric and
    its norm the spectral radius of `I − P H`: the bound is never vacuous for an iteration that converges.

    The parameters are those of [`contraction_certificate`][], which also says what is raised.

    Raises
    ------
    ValueError
        Also where an operator is not symmetric, up to `K ε` times its largest entry, or has an eigenvalue that is not
        above `K ε` times its largest one, for a size `K` and machine epsilon `ε`.

    >>> import jax.numpy as jnp
    >>> operators, errors = jnp.diag(jnp.array([1.0, 0.25]))[None], jnp.ones((1, 2))
    >>> certificate = energy_certificate(jnp.eye(2), operators, errors, depth=1)
    >>> certificate.energy_contraction.tolist(), bool(certificate.bounds[1, 0] > 0.83)
    ([0.75], True)
    """
    check_tasks(operators, {"preconditioner": preconditioner}, {"initial_errors": initial_errors})
    certificate = _energy(preconditioner, operators, initial_errors, checked_depth(depth))
    return raise_failures(certificate, certificate.result, of="tasks") if throw else certificate


def energy_norm(
    operators: Float[Array, "tasks size size"], errors: Float[Array, "*iterates tasks size"]
) -> Float[Array, "*iterates tasks"]:
    """`‖e‖_H = (eᵀ H e)^{1/2}` for errors of one depth or of several.

    NaN where the quadratic form is negative, which a positive definite `H` excludes.

    Raises
    ------
    ValueError
        Where the last two axes of the errors are not those of the operators, and for dtypes that differ.

    >>> import jax.numpy as jnp
    >>> energy_norm(4.0 * jnp.eye(2)[None], jnp.array([[3.0, 4.0]])).tolist()
    [10.0]
    """
    check_tasks(operators, {}, {})
    if errors.shape[-2:] != operators.shape[:2]:
        raise ValueError(
            f"errors end in (tasks, size) = {operators.shape[:2]} for operators {operators.shape}; got {errors.shape}."
        )
    check_dtypes(operators=operators, errors=errors)
    return _energy_norm(operators, errors)


def require_contraction(certificate: Certificate) -> Certificate:
    """The certificate, where every task contracts.

    Bounds on errors hold just as well for an iteration that diverges, so that no violation of a bound means no
    convergence. Whoever claims a contraction passes the certificate through here.

    Raises
    ------
    ValueError
        Where a task does not contract, with the number of such tasks and the one of largest rate. Under a
        transformation, the run-time error of Equinox.

    >>> import jax.numpy as jnp
    >>> certificate = contraction_certificate(3.0 * jnp.eye(1), jnp.ones((4, 1, 1)), jnp.ones((4, 1)), depth=1)
    >>> require_contraction(certificate)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: The rate of the iteration is not below 1, ... of 4 tasks, ... Largest rate: 2 at index 0.
    """
    result = first_failure((~certificate.contracts, RESULTS.no_contraction))
    detail = ""
    if not isinstance(certificate.rate, Tracer):
        rates = np.nan_to_num(np.asarray(certificate.rate), nan=np.inf)
        detail = f" Largest rate: {rates.max():.6g} at index {rates.argmax()}."
    return raise_failures(certificate, result, of="tasks", detail=detail)


@partial(jax.jit, static_argnums=3)
def _contraction(preconditioner, operators, initial_errors, depth) -> ContractionCertificate:
    axes = "ij" if preconditioner.ndim == 2 else "tij"
    product = jnp.einsum(f"{axes},tjk->tik", preconditioner, operators, precision="highest")
    initial = jnp.linalg.norm(initial_errors, axis=1)
    finite = _finite(product) & jnp.isfinite(initial)
    matrices = jnp.where(finite[:, None, None], jnp.eye(operators.shape[1], dtype=operators.dtype)[None] - product, 0)
    norm, radius = _spectral_norm(matrices), jnp.abs(jnp.linalg.eigvals(matrices)).max(axis=1)

    def step(power, _):
        power_finite = _finite(power)
        norms = _spectral_norm(jnp.where(power_finite[:, None, None], power, 0))
        following = jnp.einsum("tij,tjk->tik", power, matrices, precision="highest")
        return following, jnp.where(power_finite, norms, jnp.inf)

    _, norms = jax.lax.scan(step, matrices, length=depth)
    powers = jnp.concatenate([jnp.ones_like(norm)[None], norms])
    return ContractionCertificate(
        spectral_radius=_where(finite, radius),
        spectral_norm=_where(finite, norm),
        norm_bounds=_where(finite, _scaled(_powers(norm, depth), initial)),
        power_bounds=_where(finite, _scaled(powers, initial)),
        contracts=finite & _below_one(radius, norm, operators),
        result=first_failure((~finite, RESULTS.not_finite)),
    )


@partial(jax.jit, static_argnums=3)
def _energy(preconditioner, operators, initial_errors, depth) -> EnergyCertificate:
    size = operators.shape[1]
    threshold = size * machine_epsilon(operators.dtype)
    identity = jnp.eye(size, dtype=operators.dtype)[None]
    finite = _finite(operators)
    asymmetry = jnp.abs(operators - jnp.swapaxes(operators, 1, 2)).max(axis=(1, 2))
    symmetric = asymmetry <= threshold * jnp.abs(operators).max(axis=(1, 2))
    eigenvalues, vectors = jnp.linalg.eigh(jnp.where((finite & symmetric)[:, None, None], operators, identity))
    definite = eigenvalues[:, 0] > threshold * eigenvalues[:, -1]
    root = jnp.sqrt(jnp.where(definite[:, None], eigenvalues, 1))[:, :, None] * jnp.swapaxes(vectors, 1, 2)
    axes = "jk" if preconditioner.ndim == 2 else "tjk"
    product = jnp.einsum(f"tij,{axes},tlk->til", root, preconditioner, root, precision="highest")
    initial = jnp.linalg.norm(jnp.einsum("tij,tj->ti", root, initial_errors, precision="highest"), axis=1)
    finite &= _finite(product) & jnp.isfinite(initial)
    contraction = _spectral_norm(jnp.where(finite[:, None, None], identity - product, 0))
    result = first_failure(
        (~finite, RESULTS.not_finite),
        (~symmetric, RESULTS.not_symmetric),
        (~definite, RESULTS.not_positive_definite),
    )
    holds = finite & symmetric & definite
    return EnergyCertificate(
        energy_contraction=_where(holds, contraction),
        bounds=_where(holds, _scaled(_powers(contraction, depth), initial)),
        contracts=holds & _below_one(contraction, contraction, operators),
        result=result,
    )


@jax.jit
def _energy_norm(operators, errors):
    return jnp.sqrt(jnp.einsum("...ti,tij,...tj->...t", errors, operators, errors, precision="highest"))


def _finite(matrices):
    return jnp.isfinite(matrices).all(axis=(1, 2))


def _spectral_norm(matrices):
    return jnp.linalg.norm(matrices, ord=2, axis=(1, 2))


def _powers(factor, depth):
    return factor[None] ** jnp.arange(depth + 1, dtype=factor.dtype)[:, None]


def _scaled(growth, initial):
    """The product, in which zero times an overflow is zero."""
    return jnp.where(initial[None] == 0, 0, growth * initial[None])


def _where(holds, values):
    return jnp.where(holds if values.ndim == 1 else holds[None], values, jnp.nan)


def _below_one(rate, norm, operators):
    return rate < 1 - operators.shape[1] * machine_epsilon(operators.dtype) * (1 + norm)
