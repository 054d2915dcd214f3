"""Tokens: what an attention preconditioner knows about each unknown."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import ArrayLike, Key


def position_tokens(
    size: int, frequencies: int = 3, *, dtype: jax.typing.DTypeLike = float
) -> Float[Array, "size features"]:
    """Tokens of unknowns in a row: `[1, x, cos πx, …, cos πFx, sin πx, …, sin πFx]`.

    Unknown `j` of `K` lies at `x_j = j/(K − 1)`, so that the first is at 0 and the last at 1; a single one lies at 0.

    Parameters
    ----------
    size
        `K`.
    frequencies
        `F`; the tokens have `2 + 2F` features.
    dtype
        Of the tokens.

    Raises
    ------
    ValueError
        For a size below one or a negative number of frequencies.

    >>> position_tokens(3, 1).round(3).tolist()
    [[1.0, 0.0, 1.0, 0.0], [1.0, 0.5, 0.0, 1.0], [1.0, 1.0, -1.0, 0.0]]
    """
    if size < 1 or frequencies < 0:
        raise ValueError(
            f"position_tokens takes a size of at least 1 and at least 0 frequencies; got size={size}, "
            f"frequencies={frequencies}."
        )
    positions = np.linspace(0, 1, size)[:, None]
    angles = np.pi * positions * np.arange(1, frequencies + 1)[None, :]
    return jnp.asarray(np.hstack([np.ones_like(positions), positions, np.cos(angles), np.sin(angles)]), dtype)


class OperatorTokens(eqx.Module):
    """Tokens that depend on the operator of a task, for a task-conditional preconditioner `P(H_i)`.

    Unknown `j` of task `i` has the token

        x_ij = [c_j, (H_i Ω)_j, (H_i)_jj]

    made of its coordinates `c_j`, row `j` of a sketch of the operator, and its diagonal entry. Coordinates and sketch
    are fixed, and the same for all tasks. Derivatives with respect to the operators pass through the tokens.

    The tokens depend on the order of the unknowns: renumbering the unknowns of an operator does not renumber its
    tokens, because coordinates and sketch stay where they are. They grow in proportion to the operator, and suit
    attention best where its entries are of order one.

    Attributes
    ----------
    coordinates
        `c`, shape `(size, p)`.
    sketch
        `Ω`, shape `(size, q)`; draw it independently of the operators.

    Raises
    ------
    ValueError
        Where the two are not matrices of one number of rows.

    >>> tokens = OperatorTokens(jnp.array([[0.0], [1.0]]), jnp.ones((2, 1)))
    >>> tokens(jnp.array([[[2.0, 1.0], [1.0, 3.0]]])).tolist()
    [[[0.0, 3.0, 2.0], [1.0, 4.0, 3.0]]]
    """

    coordinates: Float[Array, "size _"] = eqx.field(converter=jnp.asarray)
    sketch: Float[Array, "size _"] = eqx.field(converter=jnp.asarray)

    def __check_init__(self):
        shapes = self.coordinates.shape, self.sketch.shape
        if any(len(shape) != 2 for shape in shapes) or shapes[0][0] != shapes[1][0]:
            raise ValueError(
                f"Coordinates and sketch have one row per unknown; got shapes {shapes[0]} and {shapes[1]}."
            )

    @classmethod
    def initialise(cls, coordinates: Float[ArrayLike, "size _"], *, sketch_size: int = 4, key: Key) -> "OperatorTokens":
        """Tokens with a sketch of independent standard normal entries, in the dtype of the coordinates.

        Parameters
        ----------
        coordinates
            `c`, for instance [`position_tokens`][] or the points of a mesh.
        sketch_size
            `q`, the number of columns of `Ω`.
        key
            For the sketch alone: neither that of the operators nor that of the parameters.

        Raises
        ------
        ValueError
            As the class does, and for fewer than one column.
        """
        if sketch_size < 1:
            raise ValueError(f"A sketch has at least one column; got sketch_size={sketch_size}.")
        coordinates = jnp.asarray(coordinates)
        return cls(coordinates, jax.random.normal(key, (coordinates.shape[0], sketch_size), coordinates.dtype))

    @property
    def shape(self) -> tuple[int, int]:
        """`(size, p + q + 1)`: the shape of the tokens of one task."""
        return self.coordinates.shape[0], self.coordinates.shape[1] + self.sketch.shape[1] + 1

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of the coordinates."""
        return self.coordinates.dtype

    def __call__(self, operators: Float[Array, "tasks size size"]) -> Float[Array, "tasks size features"]:
        """The tokens of each task."""
        coordinates = jnp.broadcast_to(self.coordinates[None], (operators.shape[0], *self.coordinates.shape))
        sketches = jnp.einsum("tij,jq->tiq", operators, self.sketch, precision="highest")
        diagonals = jnp.diagonal(operators, axis1=1, axis2=2)
        return jnp.concatenate([coordinates, sketches, diagonals[:, :, None]], axis=2)
