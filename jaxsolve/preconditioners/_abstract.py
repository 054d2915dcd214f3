"""What every preconditioner promises."""

import abc
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Preconditioner = TypeVar("Preconditioner", bound="AbstractPreconditioner")


class AbstractPreconditioner(eqx.Module):
    """A linear map `P`, or one map `P_i = P(H_i)` per task, with parameters.

    Every leaf is an array, so that preconditioners pass through `jax.jit`, `jax.vmap` and `jax.grad` as arguments.
    All of them share one floating dtype, which is also that of the operators and residuals.

    Attributes
    ----------
    data_fields
        Names of the fields that are data and not parameters; see [`AbstractPreconditioner.trainable`][].
    size
        The number of unknowns, or ``None`` where a preconditioner takes operators of any size.

    Raises
    ------
    ValueError
        When built from arrays that do not share one floating dtype.
    """

    data_fields: eqx.AbstractClassVar[tuple[str, ...]]

    def __check_init__(self):
        found = {leaf.dtype for leaf in jax.tree.leaves(eqx.filter(self, eqx.is_array))}
        if len(found) != 1 or not jnp.issubdtype(self.dtype, jnp.floating):
            raise ValueError(
                f"The arrays of a preconditioner share one floating dtype; {type(self).__name__} got "
                f"{', '.join(sorted(map(str, found))) or 'none'}. Cast them to float32 or float64."
            )

    @property
    @abc.abstractmethod
    def size(self) -> int | None:
        """The number of unknowns, or ``None`` for any."""

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of all arrays."""
        return jax.tree.leaves(eqx.filter(self, eqx.is_array))[0].dtype

    @abc.abstractmethod
    def matrix(
        self, operators: Float[Array, "tasks size size"]
    ) -> Float[Array, "size size"] | Float[Array, "tasks size size"]:
        """The dense `P`: one matrix where it is shared by all tasks, else one per task.

        Parameters
        ----------
        operators
            `H`; a shared `P` depends on their shape and dtype only.

        Raises
        ------
        ValueError
            For operators that are not square, or of another size or dtype than the preconditioner.
        """

    @abc.abstractmethod
    def apply(
        self, operators: Float[Array, "tasks size size"], residuals: Float[Array, "tasks size"]
    ) -> Float[Array, "tasks size"]:
        """`P r`, one row per task: the product of [`AbstractPreconditioner.matrix`][] and `r`, up to rounding.

        Raises
        ------
        ValueError
            As [`AbstractPreconditioner.matrix`][] does, and for residuals of another shape or dtype.
        """

    def trainable(self: Preconditioner) -> Preconditioner:
        """Marks what training changes: ``True`` at parameters, ``False`` at data.

        A gradient with respect to the whole module also has the derivatives for its data. Split the module first:
        ``parameters, data = equinox.partition(preconditioner, preconditioner.trainable())``, differentiate with
        respect to ``parameters``, and put them together with ``equinox.combine(parameters, data)``.
        """
        marks = jax.tree.map(eqx.is_inexact_array, self)
        return eqx.tree_at(
            lambda module: [getattr(module, name) for name in self.data_fields],
            marks,
            replace_fn=lambda part: jax.tree.map(lambda _: False, part),
        )

    def check(
        self, operators: Float[Array, "tasks size size"], residuals: Float[Array, "tasks size"] | None = None
    ) -> None:
        """Refuse operators and residuals that this preconditioner does not fit; for use in subclasses.

        Raises
        ------
        ValueError
            For operators that are not square, residuals that are not one row per task, and a size or dtype that is
            not that of the preconditioner.
        """
        name = type(self).__name__
        if operators.ndim != 3 or operators.shape[1] != operators.shape[2]:
            raise ValueError(
                f"operators have shape (tasks, size, size); {name} got {operators.shape}. Put a task axis in front of "
                "one matrix."
            )
        if self.size not in (None, operators.shape[1]):
            raise ValueError(
                f"This {name} is for {self.size} unknowns; got operators of shape {operators.shape}. Build one for "
                f"size {operators.shape[1]}."
            )
        arrays = [operators]
        if residuals is not None:
            arrays.append(residuals)
            if residuals.shape != operators.shape[:2]:
                raise ValueError(
                    f"Operators of shape {operators.shape} take residuals of shape {operators.shape[:2]}, one row per "
                    f"task; got {residuals.shape}. Map over further residuals of one task with jax.vmap."
                )
        if any(array.dtype != self.dtype for array in arrays):
            raise ValueError(
                f"This {name} has dtype {self.dtype}; got operators and residuals of dtype "
                f"{', '.join(str(array.dtype) for array in arrays)}. Cast one of them with astype."
            )
