"""What the figures of a learned solver show, as arrays: computed from matrices alone, without drawing."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._types import ArrayLike
from ..certificates import contraction_certificate, depth_risk, energy_certificate, order_parameters
from ..solver import trajectory


class GainSpectrum(NamedTuple):
    """How far a preconditioner has come towards the inverse of the mean operator `H̄ = V Λ Vᵀ`.

    Attributes
    ----------
    steps
        Training steps after which the preconditioner was saved.
    inverse_eigenvalues
        `1/λ_k`, in falling order of `λ_k`.
    gains
        `(Vᵀ P V)_kk` of each saved preconditioner. The inverse has gains `1/λ_k`; equal gains alone do not make it
        the inverse, because the entries off the diagonal are not shown.
    contraction
        `max |1 − eig(P H̄)|` of each saved preconditioner, which counts those entries.
    """

    steps: Int[np.ndarray, " saved"]
    inverse_eigenvalues: Float[np.ndarray, " size"]
    gains: Float[np.ndarray, "saved size"]
    contraction: Float[np.ndarray, " saved"]


class PhasePath(NamedTuple):
    """Errors of an iteration in two unknowns.

    Attributes
    ----------
    errors
        `e_0, …, e_L`.
    detour
        The length of the path over the distance between its ends: 1 for a straight line.
    """

    errors: Float[np.ndarray, "iterates 2"]
    detour: float


class AttentionModes(NamedTuple):
    """Matrices in the eigenvectors of the mean operator, in falling order of its eigenvalues.

    Attributes
    ----------
    modes
        `Vᵀ A V`.
    off_diagonal
        The share of `Σ_{ij} |(Vᵀ A V)_ij|` that is off the diagonal.
    """

    modes: Float[np.ndarray, "matrices size size"]
    off_diagonal: Float[np.ndarray, " matrices"]


class RiskOverlay(NamedTuple):
    """Mean squares over tasks and unknowns, without a factor 1/2, at depths `0, …, L`.

    Attributes
    ----------
    risk
        `1/(N K) Σ_i ‖e_{i,l}‖²`.
    norm_bound
        The same mean of `‖I − P H‖₂^l ‖e_0‖₂`.
    power_bound
        The same mean of `‖(I − P H)^l‖₂ ‖e_0‖₂`.
    energy_bound
        The same mean of `ρ^l ‖e_0‖_H / λ_min(H)^{1/2}`, with `ρ` the contraction factor in the energy norm.
    """

    risk: Float[np.ndarray, " iterates"]
    norm_bound: Float[np.ndarray, " iterates"]
    power_bound: Float[np.ndarray, " iterates"]
    energy_bound: Float[np.ndarray, " iterates"]


class OrderParameterPath(NamedTuple):
    """`q_1, q_2, q_3` of [`jaxsolve.certificates.order_parameters`][] after so many training steps."""

    steps: Int[np.ndarray, " saved"]
    values: Float[np.ndarray, "saved 3"]


def gain_spectrum(
    preconditioners: Float[ArrayLike, "saved size size"],
    operators: Float[ArrayLike, "tasks size size"],
    steps: Int[ArrayLike, " saved"],
) -> GainSpectrum:
    """Gains of saved preconditioners in the eigenvectors of the mean operator, and their contraction factors.

    Raises
    ------
    ValueError
        Where the mean operator is not symmetric positive definite.

    >>> gain_spectrum(np.eye(2)[None], np.diag([1.0, 0.5])[None], np.array([0])).contraction.tolist()
    [0.5]
    """
    mean, eigenvalues, vectors = _mean_spectrum(operators)
    matrices = np.asarray(preconditioners, float)
    gains = np.einsum("ik,sij,jk->sk", vectors, matrices, vectors)
    contraction = np.abs(1 - np.linalg.eigvals(matrices @ mean)).max(axis=1)
    return GainSpectrum(np.asarray(steps), 1 / eigenvalues, gains, contraction)


def phase_path(
    preconditioner: Float[ArrayLike, "2 2"],
    operator: Float[ArrayLike, "2 2"],
    initial_error: Float[ArrayLike, "2"],
    *,
    depth: int,
) -> PhasePath:
    """The errors `e_{l+1} = (I − P H) e_l`, by the iteration of the solver with the solution 0.

    >>> operator = np.diag([1.0, 0.08])
    >>> round(phase_path(0.6 * np.linalg.inv(operator), operator, np.ones(2), depth=5).detour, 12)
    1.0
    """
    matrix, start = jnp.asarray(operator, float)[None], jnp.asarray(initial_error, float)[None]
    errors = np.asarray(trajectory(jnp.asarray(preconditioner, float), matrix, 0 * start, start, depth=depth))[:, 0]
    length = np.linalg.norm(np.diff(errors, axis=0), axis=1).sum()
    return PhasePath(errors, float(length / np.linalg.norm(errors[-1] - errors[0])))


def attention_modes(
    matrices: Float[ArrayLike, "matrices size size"], operators: Float[ArrayLike, "tasks size size"]
) -> AttentionModes:
    """Attention maps, or preconditioners, in the eigenvectors of the mean operator.

    Raises
    ------
    ValueError
        Where the mean operator is not symmetric positive definite.

    >>> attention_modes(np.ones((1, 2, 2)), np.diag([2.0, 1.0])[None]).off_diagonal.tolist()
    [0.5]
    """
    _, _, vectors = _mean_spectrum(operators)
    modes = np.einsum("ik,mij,jl->mkl", vectors, np.asarray(matrices, float), vectors)
    size = np.abs(modes).sum(axis=(1, 2))
    diagonal = np.abs(np.diagonal(modes, axis1=1, axis2=2)).sum(axis=1)
    return AttentionModes(modes, 1 - diagonal / size)


def risk_overlay(
    preconditioner: Float[ArrayLike, "size size"] | Float[ArrayLike, "tasks size size"],
    operators: Float[ArrayLike, "tasks size size"],
    solutions: Float[ArrayLike, "tasks size"],
    initial: Float[ArrayLike, "tasks size"],
    *,
    depth: int,
) -> RiskOverlay:
    """The risk of a decoder at every depth, and what certificates say of it beforehand.

    Raises
    ------
    ValueError
        As the certificates do: among others for operators that are not symmetric positive definite.
    """
    matrix, systems, solved, start = (jnp.asarray(array) for array in (preconditioner, operators, solutions, initial))
    sides = jnp.einsum("tij,tj->ti", systems, solved, precision="highest")
    iterates = trajectory(matrix, systems, sides, start, depth=depth)
    contraction = contraction_certificate(matrix, systems, start - solved, depth=depth)
    energies = np.asarray(energy_certificate(matrix, systems, start - solved, depth=depth).bounds)
    smallest = np.linalg.eigvalsh(np.asarray(operators))[:, 0]
    size = systems.shape[1]
    return RiskOverlay(
        np.asarray(depth_risk(iterates, solved)),
        (np.asarray(contraction.norm_bounds) ** 2).mean(axis=1) / size,
        (np.asarray(contraction.power_bounds) ** 2).mean(axis=1) / size,
        (energies**2 / smallest).mean(axis=1) / size,
    )


def order_parameter_path(
    preconditioners: Float[ArrayLike, "saved size size"],
    operators: Float[ArrayLike, "tasks size size"],
    error_moment: Float[ArrayLike, "size size"],
    steps: Int[ArrayLike, " saved"],
) -> OrderParameterPath:
    """`q_1, q_2, q_3` of saved preconditioners; the arguments are those of the order parameters."""
    found = jax.vmap(order_parameters, (0, None, None))(
        jnp.asarray(preconditioners), jnp.asarray(operators), jnp.asarray(error_moment)
    )
    values = np.stack([found.first_moment, found.second_moment, found.residual_energy], axis=1)
    return OrderParameterPath(np.asarray(steps), values)


def _mean_spectrum(operators):
    mean = np.asarray(operators, float).mean(axis=0)
    if np.abs(mean - mean.T).max() > 1e-5 * np.abs(mean).max():
        raise ValueError("Modes are those of a symmetric mean operator; this one is not symmetric.")
    eigenvalues, vectors = np.linalg.eigh((mean + mean.T) / 2)
    if eigenvalues[0] <= 0:
        raise ValueError(f"The mean operator has the eigenvalue {eigenvalues[0]:.3g}; its modes need positive ones.")
    return mean, eigenvalues[::-1], vectors[:, ::-1]
