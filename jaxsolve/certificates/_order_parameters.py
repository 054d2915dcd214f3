"""Traces that describe a preconditioner on a family of tasks."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar
from ._shapes import check_tasks


class OrderParameters(NamedTuple):
    """Means over tasks, from [`order_parameters`][]."""

    residual_overlap: Scalar
    """`q_0 = E_H Tr(P H S) / K`."""
    first_moment: Scalar
    """`q_1 = E_H Tr(P H) / K`."""
    second_moment: Scalar
    """`q_2 = E_H Tr(P H P H) / K`."""
    residual_energy: Scalar
    """`q_3 = E_H Tr(P H S Hᵀ Pᵀ) / K`."""


def order_parameters(
    preconditioner: Float[Array, "size size"] | Float[Array, "tasks size size"],
    operators: Float[Array, "tasks size size"],
    error_moment: Float[Array, "size size"] | Float[Array, "tasks size size"],
) -> OrderParameters:
    """The traces `q_0, …, q_3` of words in `P H` and the second moment `S = E[e_0 e_0ᵀ]` of the first error.

    Each is divided by the size `K` and averaged over the tasks. The risk after one step is exactly

        E ‖e_1‖² / K = E Tr(S) / K − 2 q_0 + q_3,

    without the factor 1/2 of the training loss. At depth `L` the risk needs words of up to `2 L` factors `P H`: equal
    `q_1, q_2, q_3`, and all the more equal spectra of `P` and `H`, do not give equal risks. The traces are
    diagnostics.

    Parameters
    ----------
    preconditioner
        `P`, shared by all tasks or one per task.
    operators
        `H`.
    error_moment
        `S`, symmetric, shared by all tasks or one per task. The identity of the one-step risk needs the symmetry.

    Raises
    ------
    ValueError
        For shapes that do not fit and dtypes that are not one floating dtype.

    >>> import jax.numpy as jnp
    >>> order_parameters(0.5 * jnp.eye(2), 2.0 * jnp.eye(2)[None], 3.0 * jnp.eye(2)).residual_energy.item()
    3.0
    """
    check_tasks(operators, {"preconditioner": preconditioner, "error_moment": error_moment}, {})
    return _traces(preconditioner, operators, error_moment)


@jax.jit
def _traces(preconditioner, operators, error_moment) -> OrderParameters:
    trace = partial(jnp.einsum, precision="highest")
    axes = "ij" if preconditioner.ndim == 2 else "tij"
    product = trace(f"{axes},tjk->tik", preconditioner, operators)
    moment = "jk" if error_moment.ndim == 2 else "tjk"
    moved = trace(f"tij,{moment}->tik", product, error_moment)
    count = operators.shape[0] * operators.shape[1]
    return OrderParameters(
        residual_overlap=trace("tii->", moved) / count,
        first_moment=trace("tii->", product) / count,
        second_moment=trace("tij,tji->", product, product) / count,
        residual_energy=trace("tij,tij->", moved, product) / count,
    )
