"""The error of an encoder and a decoder in a row: split exactly, and bounded."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._arguments import checked_depth
from .._results import RESULTS, first_failure, raise_failures
from .._types import Scalar
from ..solver import trajectory
from ._contraction import ContractionCertificate, contraction_certificate
from ._shapes import check_tasks


class Composition(eqx.Module):
    """Where the risk of a composed run comes from, at depths `0, …, L`; from [`compose_risk`][].

    Risks are means over tasks and unknowns without a factor 1/2, and

        total = decoder + floor + interaction

    holds exactly. ``total`` is taken from the error alone and not as this sum.

    Attributes
    ----------
    total
        `E ‖x_l − x*‖² / K`.
    decoder
        `E ‖x_l − x†‖² / K`: the unfinished iteration, measured against the solution `x†` of the estimated systems.
    floor
        `E ‖x† − x*‖² / K`: the wrong operator, solved to the end.
    interaction
        `2 E ⟨x_l − x†, x† − x*⟩ / K`, of either sign and at most `2 (decoder · floor)^{1/2}` in size. Where it is
        negative, the unfinished iteration makes up for part of the wrong operator.
    result
        One result per task: whether its estimated system has a finite solution and the iteration stayed finite.
    """

    total: Float[Array, " iterates"]
    decoder: Float[Array, " iterates"]
    floor: Scalar
    interaction: Float[Array, " iterates"]
    result: RESULTS


class ComposedCertificate(eqx.Module):
    """Bounds on `‖x_l − x*‖₂` of a composed run, from [`composed_certificate`][].

    Attributes
    ----------
    decoder
        The certificate of the iteration on the estimated operators, with the first error `x_0 − x†`. It is known
        without the truth.
    floor_bounds
        `‖Â⁻¹ (A − Â)‖₂ ‖x*‖₂`, one per task; needs the truth, or a set in which it lies.
    norm_bounds
        `‖I − P Â‖₂^l ‖x_0 − x†‖₂` plus the floor.
    power_bounds
        `‖(I − P Â)^l‖₂ ‖x_0 − x†‖₂` plus the floor: never above ``norm_bounds``.
    result
        One result per task. The bounds of a task that is not successful are NaN, which counts as a violation.
    """

    decoder: ContractionCertificate
    floor_bounds: Float[Array, " tasks"]
    norm_bounds: Float[Array, "iterates tasks"]
    power_bounds: Float[Array, "iterates tasks"]
    result: RESULTS


def compose_risk(
    preconditioner: Float[Array, "size size"] | Float[Array, "tasks size size"],
    estimates: Float[Array, "tasks size size"],
    right_hand_sides: Float[Array, "tasks size"],
    solutions: Float[Array, "tasks size"],
    initial: Float[Array, "tasks size"],
    *,
    depth: int,
    throw: bool = True,
) -> Composition:
    """The risk of a decoder that runs on estimated operators, split into decoder, floor and their interaction.

    An encoder has estimated `Â` from a prompt; the decoder runs `x_{l+1} = x_l + P (b − Â x_l)`. With `x† = Â⁻¹ b`,
    by a direct solve,

        x_l − x* = (x_l − x†) + (x† − x*),    x† − x* = Â⁻¹ (A − Â) x*   for b = A x*.

    The first part depends on the iteration alone, the second on the estimate alone.

    Parameters
    ----------
    preconditioner
        `P`, shared by all tasks or one per task.
    estimates
        `Â`.
    right_hand_sides, solutions
        `b` and the solution `x*` for the true operator.
    initial
        `x_0`.
    depth
        `L`, static.
    throw
        Whether to raise where a task is not finite; otherwise ``result`` tells.

    Raises
    ------
    ValueError
        For a depth that is negative or not an integer, shapes that do not fit, dtypes that are not one floating
        dtype, and tasks that are not finite, as where an estimate is singular.

    >>> one = jnp.ones((1, 1))
    >>> found = compose_risk(0.5 * one, one[None], one, 2 * one, 0 * one, depth=1)
    >>> found.total.tolist(), found.decoder.tolist(), float(found.floor), found.interaction.tolist()
    ([4.0, 2.25], [1.0, 0.25], 1.0, [2.0, 1.0])
    """
    vectors = {"right_hand_sides": right_hand_sides, "solutions": solutions, "initial": initial}
    check_tasks(estimates, {"preconditioner": preconditioner}, vectors)
    composition = _composed(preconditioner, estimates, *vectors.values(), checked_depth(depth))
    return raise_failures(composition, composition.result, of="tasks") if throw else composition


def composed_certificate(
    preconditioner: Float[Array, "size size"] | Float[Array, "tasks size size"],
    estimates: Float[Array, "tasks size size"],
    operators: Float[Array, "tasks size size"],
    solutions: Float[Array, "tasks size"],
    initial: Float[Array, "tasks size"],
    *,
    depth: int,
    throw: bool = True,
) -> ComposedCertificate:
    """Bounds on the error of a decoder on estimated operators against the truth,

        ‖x_l − x*‖₂ ≤ ‖I − P Â‖₂^l ‖x_0 − x†‖₂ + ‖Â⁻¹ (A − Â)‖₂ ‖x*‖₂,    x† = Â⁻¹ A x*.

    The rate of the first part is that of the operator which the decoder runs on: `Â`, not `A`. The second part does
    not fall with depth. Parameters and errors are those of [`compose_risk`][], with `A` as ``operators`` and the
    right-hand sides `A x*`.

    >>> one = jnp.ones((1, 1))
    >>> found = composed_certificate(0.5 * one, one[None], 2 * one[None], one, 0 * one, depth=1)
    >>> found.norm_bounds.tolist(), found.floor_bounds.tolist()
    ([[3.0], [2.0]], [1.0])
    """
    matrices = {"preconditioner": preconditioner, "operators": operators}
    check_tasks(estimates, matrices, {"solutions": solutions, "initial": initial})
    if operators.shape != estimates.shape:
        raise ValueError(f"There is one true operator per estimate, {estimates.shape}; got {operators.shape}.")
    first, floors, finite = _floors(estimates, operators, solutions, initial)
    decoder = contraction_certificate(preconditioner, estimates, first, depth=depth, throw=False)
    result = first_failure((~finite | jnp.asarray(decoder.result != RESULTS.successful), RESULTS.not_finite))
    certificate = ComposedCertificate(
        decoder=decoder,
        floor_bounds=floors,
        norm_bounds=decoder.norm_bounds + floors[None],
        power_bounds=decoder.power_bounds + floors[None],
        result=result,
    )
    return raise_failures(certificate, result, of="tasks") if throw else certificate


@partial(jax.jit, static_argnums=5)
def _composed(preconditioner, estimates, right_hand_sides, solutions, initial, depth) -> Composition:
    solved = jnp.linalg.solve(estimates, right_hand_sides[:, :, None])[:, :, 0]
    iterates = trajectory(preconditioner, estimates, right_hand_sides, initial, depth=depth)
    unfinished, wrong = iterates - solved[None], solved - solutions
    finite = jnp.isfinite(iterates).all(axis=(0, 2)) & jnp.isfinite(wrong).all(axis=1)
    return Composition(
        total=jnp.mean((iterates - solutions[None]) ** 2, axis=(1, 2)),
        decoder=jnp.mean(unfinished**2, axis=(1, 2)),
        floor=jnp.mean(wrong**2),
        interaction=2 * jnp.mean(unfinished * wrong[None], axis=(1, 2)),
        result=first_failure((~finite, RESULTS.not_finite)),
    )


@jax.jit
def _floors(estimates, operators, solutions, initial):
    sides = jnp.einsum("tij,tj->ti", operators, solutions, precision="highest")
    solved = jnp.linalg.solve(estimates, sides[:, :, None])[:, :, 0]
    wrong = jnp.linalg.solve(estimates, operators - estimates)
    finite = jnp.isfinite(wrong).all(axis=(1, 2)) & jnp.isfinite(solved).all(axis=1)
    norms = jnp.linalg.norm(jnp.where(finite[:, None, None], wrong, 0), ord=2, axis=(1, 2))
    floors = jnp.where(finite, norms * jnp.linalg.norm(solutions, axis=1), jnp.nan)
    return jnp.where(finite[:, None], initial - solved, jnp.nan), floors, finite
