"""Array types used in signatures."""

from collections.abc import Callable
from typing import TypeAlias

import jax
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

Key: TypeAlias = PRNGKeyArray
"""A typed key, as made by ``jax.random.key``."""

Scalar: TypeAlias = Float[Array, ""]
Vector: TypeAlias = Float[Array, " size"]
Matrix: TypeAlias = Float[Array, "rows columns"]
Activation: TypeAlias = Callable[[jax.Array], jax.Array]
ArrayLike: TypeAlias = jax.Array | np.ndarray

__all__ = ["Activation", "Array", "ArrayLike", "Float", "Int", "Key", "Matrix", "Scalar", "Vector"]
