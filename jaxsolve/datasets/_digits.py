"""Handwritten digits."""

from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._types import ArrayLike
from ._files import read_archive

Scaling = Literal["unit_rows", "unit_interval", "standardised"]


class Digits(NamedTuple):
    """Images as rows of 784 pixels, row by row from the top left corner, and their labels 0 to 9."""

    images: Float[Array, "count 784"]
    labels: Int[Array, " count"]


def digits(
    count: int, *, start: int = 0, scaling: Scaling = "unit_rows", dtype: jax.typing.DTypeLike = float
) -> Digits:
    """Handwritten digits number ``start`` to ``start + count - 1`` of the 4096 that come with the package.

    They are MNIST digits in a fixed random order, not one of its official splits; disjoint ranges are disjoint sets.
    Origin and licence stand in the package's data folder.

    Parameters
    ----------
    count, start
        Which digits.
    scaling
        ``"unit_interval"`` gives intensities between 0 and 1; ``"unit_rows"`` divides each image by its Euclidean
        norm; ``"standardised"`` subtracts one mean and divides by one standard deviation, both over all pixels of
        all 4096 digits, so that disjoint ranges are scaled alike.
    dtype
        Of the images. The scaling is computed in float64.

    Raises
    ------
    ValueError
        For a range that is empty or leaves the 4096 digits, and for a scaling or a dtype that does not exist.

    >>> images, labels = digits(4)
    >>> images.shape, labels.tolist()
    ((4, 784), [3, 8, 1, 0])
    """
    archive = read_archive("digits.npz")
    total = len(archive["labels"])
    if count < 1 or start < 0 or start + count > total:
        raise ValueError(
            f"There are {total} digits; got start={start} and count={count}. "
            f"Choose 0 <= start and 1 <= count <= {total} - start."
        )
    if not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError(f"Images have a floating dtype; got {jnp.dtype(dtype)}. Use float32 or float64.")
    images = archive["images"][start : start + count].reshape(count, -1) / 255
    if scaling == "unit_rows":
        images = images / np.linalg.norm(images, axis=1, keepdims=True)
    elif scaling == "standardised":
        images = (images - archive["images"].mean() / 255) / (archive["images"].std() / 255)
    elif scaling != "unit_interval":
        raise ValueError(f"scaling is one of {', '.join(map(repr, get_args(Scaling)))}; got {scaling!r}.")
    return Digits(jnp.asarray(images, dtype), jnp.asarray(archive["labels"][start : start + count], int))


def one_hot(
    labels: Int[ArrayLike, " count"], classes: int = 10, *, dtype: jax.typing.DTypeLike = float
) -> Float[Array, "count classes"]:
    """Rows of the identity matrix: entry `(i, labels[i])` is 1 and all others are 0.

    Raises
    ------
    ValueError
        For labels that are not integers from 0 to ``classes - 1``.

    >>> one_hot(jnp.array([1, 0]), 3).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    indices = np.asarray(labels)
    if not np.issubdtype(indices.dtype, np.integer) or indices.ndim != 1:
        raise ValueError(f"Labels are a vector of integers; got shape {indices.shape} and dtype {indices.dtype}.")
    if indices.size and not 0 <= indices.min() <= indices.max() < classes:
        raise ValueError(
            f"Labels lie between 0 and classes - 1 = {classes - 1}; got values from {indices.min()} to "
            f"{indices.max()}. Raise classes, or count the labels from 0."
        )
    return jnp.asarray(np.eye(classes)[indices], dtype)
