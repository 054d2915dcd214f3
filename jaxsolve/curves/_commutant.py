"""Closure by symmetry: where the law of the tasks has a symmetry, preconditioners that share it train by themselves."""

import abc
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Scalar
from ..solver import population_loss


class AbstractSymmetry(eqx.Module):
    """A group of orthogonal matrices `g` and its commutant, the matrices with `g P gᵀ = P`.

    Where `g H gᵀ` has the law of `H` and `g S gᵀ = S` for every `g`, the population loss has `𝓛(g P gᵀ) = 𝓛(P)`. Its
    gradient is then equivariant, and lies in the commutant where `P` does: descent and flow from there never leave it,
    and the coordinates `c` of `P = Σ_a c_a B_a` are closed order parameters. The basis `B` is orthogonal.
    """

    size: eqx.AbstractVar[int]

    @abc.abstractmethod
    def elements(self) -> Float[Array, "order size size"]:
        """A finite group with this commutant."""

    @abc.abstractmethod
    def coordinates(self, matrix: Float[Array, "size size"]) -> Float[Array, " order_parameters"]:
        """Coordinates of the orthogonal projection of a matrix onto the commutant."""

    @abc.abstractmethod
    def matrix(self, coordinates: Float[Array, " order_parameters"]) -> Float[Array, "size size"]:
        """The matrix of the commutant with these coordinates."""

    def project(self, matrix: Float[Array, "size size"]) -> Float[Array, "size size"]:
        """The orthogonal projection onto the commutant, equal to the mean of `g P gᵀ`."""
        return self.matrix(self.coordinates(matrix))

    def symmetrise(self, operators: Float[Array, "tasks size size"]) -> Float[Array, "symmetrised size size"]:
        """All `g H gᵀ`: a finite set of tasks whose law has the symmetry exactly."""
        elements = self.elements().astype(operators.dtype)
        images = jnp.einsum("gij,tjk,glk->tgil", elements, operators, elements, precision="highest")
        return images.reshape(-1, self.size, self.size)


class SignSymmetry(AbstractSymmetry):
    """Changes of sign of coordinates; commutant: diagonal matrices, with their diagonal as coordinates.

    Wishart tasks with a diagonal covariance have this symmetry. The finite group is that of the `K` Walsh functions,
    which has the same commutant as all `2^K` changes of sign.

    >>> SignSymmetry(2).project(jnp.ones((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    size: int = eqx.field(static=True)

    def __check_init__(self):
        _check_size(self.size, power_of_two=True)

    def elements(self) -> Float[Array, "order size size"]:
        """Diagonal matrices of Walsh functions."""
        signs = np.ones((1, 1))
        while len(signs) < self.size:
            signs = np.kron(signs, np.array([[1, 1], [1, -1]]))
        return jnp.asarray(signs[:, :, None] * np.eye(self.size)[None], float)

    def coordinates(self, matrix: Float[Array, "size size"]) -> Float[Array, " order_parameters"]:
        """The diagonal."""
        return jnp.diagonal(matrix)

    def matrix(self, coordinates: Float[Array, " order_parameters"]) -> Float[Array, "size size"]:
        """A diagonal matrix."""
        return jnp.diag(coordinates)


class CyclicSymmetry(AbstractSymmetry):
    """Cyclic shifts; commutant: circulant matrices, with the mean of each cyclic diagonal as coordinates.

    Periodic equations with a stationary random coefficient have this symmetry. If the law of the tasks is symmetric
    under reflections too, descent from a symmetric circulant stays symmetric, and `⌊K/2⌋ + 1` coordinates are
    different.

    >>> CyclicSymmetry(2).coordinates(jnp.array([[1.0, 2.0], [4.0, 3.0]])).tolist()
    [2.0, 3.0]
    """

    size: int = eqx.field(static=True)

    def __check_init__(self):
        _check_size(self.size)

    def elements(self) -> Float[Array, "order size size"]:
        """The permutation matrices of shifts."""
        return jnp.asarray(np.stack([np.roll(np.eye(self.size), shift, axis=0) for shift in range(self.size)]), float)

    def coordinates(self, matrix: Float[Array, "size size"]) -> Float[Array, " order_parameters"]:
        """Entry `d` is the mean of the entries `(i, i + d)`."""
        rows = jnp.arange(self.size)
        return jnp.mean(matrix[rows[None, :], (rows[None, :] + rows[:, None]) % self.size], axis=1)

    def matrix(self, coordinates: Float[Array, " order_parameters"]) -> Float[Array, "size size"]:
        """A circulant matrix with the coordinates as first row."""
        rows = jnp.arange(self.size)
        return coordinates[(rows[None, :] - rows[:, None]) % self.size]


class OrthogonalSymmetry(AbstractSymmetry):
    """All orthogonal matrices; commutant: multiples of the identity, with the factor as coordinate.

    Isotropic Wishart tasks and operators in Haar-random eigenvectors have this symmetry. The finite group is that of
    cyclic shifts times changes of sign, with the same commutant. It acts irreducibly but is smaller, so a set of tasks
    that it symmetrises has no more than its own symmetry.

    >>> OrthogonalSymmetry(2).coordinates(jnp.array([[1.0, 5.0], [5.0, 3.0]])).tolist()
    [2.0]
    """

    size: int = eqx.field(static=True)

    def __check_init__(self):
        _check_size(self.size)

    def elements(self) -> Float[Array, "order size size"]:
        """Shifts times changes of sign up to a common one: `K 2^{K−1}` matrices."""
        signs = 1 - 2 * ((np.arange(2 ** (self.size - 1))[:, None] >> np.arange(self.size)[None, :]) & 1)
        shifts = np.stack([np.roll(np.eye(self.size), shift, axis=0) for shift in range(self.size)])
        return jnp.asarray((signs[:, None, :, None] * shifts[None]).reshape(-1, self.size, self.size), float)

    def coordinates(self, matrix: Float[Array, "size size"]) -> Float[Array, " order_parameters"]:
        """The mean of the diagonal."""
        return jnp.mean(jnp.diagonal(matrix))[None]

    def matrix(self, coordinates: Float[Array, " order_parameters"]) -> Float[Array, "size size"]:
        """A multiple of the identity."""
        return coordinates[0] * jnp.eye(self.size, dtype=coordinates.dtype)


def commutant_gradient(
    symmetry: AbstractSymmetry,
    coordinates: Float[Array, " order_parameters"],
    operators: Float[Array, "tasks size size"],
    second_moment: Float[Array, "size size"],
    *,
    depth: int,
) -> Float[Array, " order_parameters"]:
    """The coordinates of the projected gradient of the population loss at a matrix of the commutant,

        (∂𝓛/∂c_a) / ‖B_a‖².

    For a symmetric law of tasks it is the whole gradient. The loss is the same on all images `g H gᵀ` of a task, so
    that one task of each orbit is enough: pass the tasks before [`AbstractSymmetry.symmetrise`][].

    Parameters
    ----------
    symmetry
        The group.
    coordinates
        `c`.
    operators, second_moment, depth
        As in [`jaxsolve.solver.population_loss`][]; `S` lies in the commutant.

    >>> group = SignSymmetry(1)
    >>> commutant_gradient(group, 0.5 * jnp.ones(1), jnp.ones((1, 1, 1)), jnp.eye(1), depth=1).tolist()
    [-0.5]
    """

    def loss(coordinates):
        return population_loss(symmetry.matrix(coordinates), operators, second_moment, depth=depth)

    basis = jax.vmap(symmetry.matrix)(jnp.eye(coordinates.size, dtype=coordinates.dtype))
    return jax.grad(loss)(coordinates) / jnp.sum(basis**2, axis=(1, 2))


def commutant_descent(
    symmetry: AbstractSymmetry,
    initial: Float[Array, " order_parameters"],
    operators: Float[Array, "tasks size size"],
    second_moment: Float[Array, "size size"],
    *,
    depth: int,
    learning_rate: Scalar,
    steps: int,
) -> Float[Array, "states order_parameters"]:
    """Order parameters at steps `0, …, steps` of gradient descent inside the commutant.

    The parameters are those of [`commutant_gradient`][]. For a law of tasks that has the symmetry it is descent on all
    entries of `P`.

    >>> path = commutant_descent(
    ...     SignSymmetry(1), jnp.zeros(1), jnp.ones((1, 1, 1)), jnp.eye(1),
    ...     depth=1, learning_rate=jnp.array(0.5), steps=2,
    ... )
    >>> path.ravel().tolist()
    [0.0, 0.5, 0.75]
    """
    return _descent(symmetry, initial, operators, second_moment, learning_rate, depth, steps)


@partial(jax.jit, static_argnums=(0, 5, 6))
def _descent(symmetry, initial, operators, second_moment, learning_rate, depth, steps):
    def step(coordinates, _):
        gradient = commutant_gradient(symmetry, coordinates, operators, second_moment, depth=depth)
        following = coordinates - learning_rate * gradient
        return following, following

    return jnp.concatenate([initial[None], jax.lax.scan(step, initial, length=steps)[1]])


def _check_size(size, *, power_of_two=False):
    if size < 1 or (power_of_two and size & (size - 1)):
        kind = "a power of two" if power_of_two else "at least 1"
        raise ValueError(
            f"The size is {kind}; got {size}. Larger groups than that of the class can be averaged by hand."
        )
