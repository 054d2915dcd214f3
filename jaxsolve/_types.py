"""Array types used in signatures."""

from typing import TypeAlias

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

Key: TypeAlias = PRNGKeyArray
"""A typed key, as made by ``jax.random.key``."""

Scalar: TypeAlias = Float[Array, ""]
"""A floating array without axes."""

ArrayLike: TypeAlias = jax.Array | np.ndarray
"""An array of JAX or of NumPy."""
