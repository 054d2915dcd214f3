"""How a weight matrix acts on the layer below it: everywhere at once, or on the patches of an image."""

import abc
import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

ImageShape = tuple[int, int, int]
Pair = tuple[int, int]


class TangentFactor(eqx.Module):
    """What one layer contributes to tangent kernels, as factors of its per-example gradients.

    The contribution to a kernel between examples `n` and `m` and outputs `c` and `c'` is
    `⟨hidden(n), hidden(m)⟩ ⟨errors(n, c), errors'(m, c')⟩`, where the second ``errors`` may come from another rule.

    Attributes
    ----------
    hidden
        `(N, features)`, or ``None`` for a first factor of one: then ``errors`` are whole per-example gradients.
    errors
        `(N, n_L, units)`, or ``None`` for the output layer, whose second factor is 1 for `c = c'` and else 0.
    """

    hidden: Float[Array, "examples features"] | None
    errors: Float[Array, "examples outputs units"] | None


class AbstractConnection(eqx.Module):
    """A linear map between two layers, given by a weight matrix of shape `(units, fan_in)`.

    Layers are rows of numbers, `(examples, n_{l−1})` below and `(examples, n_l)` above; an image stands in its row
    channel by channel, then row by row. Axes between the examples and the numbers of a layer are carried along where
    the signature shows them.
    """

    @abc.abstractmethod
    def widths(self, weight: Float[Array, "units fan_in"]) -> Pair:
        """`(n_{l−1}, n_l)`.

        Raises
        ------
        ValueError
            Where the weight matrix does not fit.
        """

    @abc.abstractmethod
    def apply(
        self,
        hidden: Float[Array, "examples below"],
        weight: Float[Array, "units fan_in"],
        bias: Float[Array, " units"] | None,
    ) -> Float[Array, "examples above"]:
        """The pre-activations of the layer above."""

    @abc.abstractmethod
    def send_back(
        self, error: Float[Array, "examples *several above"], matrix: Float[Array, "fan_in units"]
    ) -> Float[Array, "examples *several below"]:
        """The error at the layer below, with ``matrix`` in the place of the transposed weights."""

    @abc.abstractmethod
    def gradient(
        self, hidden: Float[Array, "examples below"], error: Float[Array, "examples above"]
    ) -> tuple[Float[Array, "units fan_in"], Float[Array, " units"]]:
        """Gradients of the weights and of a bias, summed over the examples and, for an image, over its positions."""

    @abc.abstractmethod
    def tangent_factor(
        self, hidden: Float[Array, "examples below"], errors: Float[Array, "examples outputs above"], *, use_bias: bool
    ) -> TangentFactor:
        """The contribution to tangent kernels of the weights, and of a bias if there is one."""


class Dense(AbstractConnection):
    """Every unit sees every unit below: `W h + b`.

    >>> Dense().apply(jnp.ones((1, 2)), jnp.array([[1.0, 2.0]]), None).tolist()
    [[3.0]]
    """

    def widths(self, weight: Float[Array, "units fan_in"]) -> Pair:
        return weight.shape[1], weight.shape[0]

    def apply(
        self,
        hidden: Float[Array, "examples below"],
        weight: Float[Array, "units fan_in"],
        bias: Float[Array, " units"] | None,
    ) -> Float[Array, "examples above"]:
        product = jnp.matmul(hidden, weight.T, precision="highest")
        return product if bias is None else product + bias[None, :]

    def send_back(
        self, error: Float[Array, "examples *several above"], matrix: Float[Array, "fan_in units"]
    ) -> Float[Array, "examples *several below"]:
        return jnp.matmul(error, matrix.T, precision="highest")

    def gradient(
        self, hidden: Float[Array, "examples below"], error: Float[Array, "examples above"]
    ) -> tuple[Float[Array, "units fan_in"], Float[Array, " units"]]:
        return jnp.matmul(error.T, hidden, precision="highest"), jnp.sum(error, axis=0)

    def tangent_factor(
        self, hidden: Float[Array, "examples below"], errors: Float[Array, "examples outputs above"], *, use_bias: bool
    ) -> TangentFactor:
        return TangentFactor(with_ones(hidden) if use_bias else hidden, errors)


class Convolution(AbstractConnection):
    """A convolution: one weight matrix acts on every patch of an image.

    `p(o, i, j) = Σ_{c, a, b} W[o, (c, a, b)] h(c, s i + a − q, s j + b − q) + b(o)` with strides `s` and `q` zeros
    before the image. It is a cross-correlation, as in every deep learning library. The patches are cut out and
    multiplied as one matrix, so that vectorising over weights or feedback gives batched matrix products.

    Parameters
    ----------
    image_shape
        `(channels, height, width)` of the image below.
    kernel_shape
        `(height, width)` of a patch.
    strides
        Steps between patches, down and across.
    padding
        ``"SAME"``, ``"SAME_LOWER"`` or ``"VALID"`` as XLA understands them: with ``"SAME"`` an axis of size `n` has
        `⌈n / s⌉` patches, and an odd zero too many stands at the end. Or the zeros before and after each axis.

    Raises
    ------
    ValueError
        For sizes below one, negative padding, or where no patch fits.

    >>> convolution = Convolution((1, 14, 14), (3, 3), (2, 2))
    >>> convolution.padding, convolution.positions
    (((0, 1), (0, 1)), (7, 7))
    """

    image_shape: ImageShape = eqx.field(static=True)
    kernel_shape: Pair = eqx.field(static=True)
    strides: Pair = eqx.field(static=True)
    padding: tuple[Pair, Pair] = eqx.field(static=True)

    def __init__(
        self,
        image_shape: Sequence[int],
        kernel_shape: Sequence[int],
        strides: Sequence[int] = (1, 1),
        padding: str | Sequence[Sequence[int]] = "SAME",
    ):
        sizes = (*image_shape, *kernel_shape, *strides)
        if (len(image_shape), len(kernel_shape), len(strides)) != (3, 2, 2) or min(sizes) < 1:
            raise ValueError(
                "A convolution has an image_shape of (channels, height, width), and a kernel_shape and strides of two "
                f"numbers each, all at least 1; got {image_shape}, {kernel_shape} and {strides}."
            )
        channels, height, width = image_shape
        self.image_shape = channels, height, width
        self.kernel_shape = kernel_shape[0], kernel_shape[1]
        self.strides = strides[0], strides[1]
        if isinstance(padding, str):
            if padding not in ("SAME", "SAME_LOWER", "VALID"):
                raise ValueError(f"padding is 'SAME', 'SAME_LOWER', 'VALID' or pairs of numbers; got {padding!r}.")
            padding = jax.lax.padtype_to_pads(self.image_shape[1:], self.kernel_shape, self.strides, padding)
        self.padding = tuple((int(before), int(after)) for before, after in padding)  # pyright: ignore
        if len(self.padding) != 2 or min(map(min, self.padding)) < 0:
            raise ValueError(f"padding holds zeros before and after each of two axes; got {self.padding}.")
        if min(self.positions) < 1:
            raise ValueError(
                f"No patch of {self.kernel_shape} fits into an image of {self.image_shape[1:]} with padding "
                f"{self.padding}."
            )

    @property
    def positions(self) -> Pair:
        """Numbers of patches, down and across."""
        axes = zip(self.image_shape[1:], self.kernel_shape, self.strides, self.padding, strict=True)
        down, across = ((size + sum(zeros) - kernel) // stride + 1 for size, kernel, stride, zeros in axes)
        return down, across

    def patches(self, hidden: Float[Array, "examples below"]) -> Float[Array, "examples fan_in positions"]:
        """What the weights multiply: an entry of a patch is a channel, then a row, then a column."""
        image = hidden.reshape(hidden.shape[0], *self.image_shape)
        image = jnp.pad(image, ((0, 0), (0, 0), *self.padding))
        down, across = self.positions
        (step, side), cut = self.strides, []
        for row, column in self._offsets():
            rows = slice(row, row + (down - 1) * step + 1, step)
            columns = slice(column, column + (across - 1) * side + 1, side)
            cut.append(image[:, :, rows, columns])
        stacked = jnp.stack(cut, axis=2)
        return stacked.reshape(hidden.shape[0], self.fan_in, down * across)

    @property
    def fan_in(self) -> int:
        """Numbers in a patch."""
        return self.image_shape[0] * math.prod(self.kernel_shape)

    def widths(self, weight: Float[Array, "units fan_in"]) -> Pair:
        if weight.shape[1] != self.fan_in:
            raise ValueError(
                f"The weights of a convolution with {self.image_shape[0]} channels and patches of "
                f"{self.kernel_shape} have {self.fan_in} columns; got shape {weight.shape}."
            )
        return math.prod(self.image_shape), weight.shape[0] * math.prod(self.positions)

    def apply(
        self,
        hidden: Float[Array, "examples below"],
        weight: Float[Array, "units fan_in"],
        bias: Float[Array, " units"] | None,
    ) -> Float[Array, "examples above"]:
        product = jnp.matmul(weight[None, :, :], self.patches(hidden), precision="highest")
        product = product if bias is None else product + bias[None, :, None]
        return product.reshape(hidden.shape[0], math.prod(product.shape[1:]))

    def send_back(
        self, error: Float[Array, "examples *several above"], matrix: Float[Array, "fan_in units"]
    ) -> Float[Array, "examples *several below"]:
        images = error.reshape(math.prod(error.shape[:-1]), matrix.shape[1], math.prod(self.positions))
        patches = jnp.matmul(matrix[None, :, :], images, precision="highest")
        return self._assembled(patches).reshape(*error.shape[:-1], math.prod(self.image_shape))

    def gradient(
        self, hidden: Float[Array, "examples below"], error: Float[Array, "examples above"]
    ) -> tuple[Float[Array, "units fan_in"], Float[Array, " units"]]:
        error = self._by_position(error)
        weight = jnp.einsum("nup,nfp->uf", error, self.patches(hidden), precision="highest")
        return weight, jnp.sum(error, axis=(0, 2))

    def tangent_factor(
        self, hidden: Float[Array, "examples below"], errors: Float[Array, "examples outputs above"], *, use_bias: bool
    ) -> TangentFactor:
        errors = self._by_position(errors)
        patches = self.patches(hidden)
        if use_bias:
            patches = jnp.concatenate([patches, jnp.ones_like(patches[:, :1])], axis=1)
        gradients = jnp.einsum("ncup,nfp->ncuf", errors, patches, precision="highest")
        return TangentFactor(None, gradients.reshape(*gradients.shape[:2], math.prod(gradients.shape[2:])))

    def _offsets(self) -> list[Pair]:
        height, width = self.kernel_shape
        return [(row, column) for row in range(height) for column in range(width)]

    def _by_position(self, error: Array) -> Array:
        positions = math.prod(self.positions)
        return error.reshape(*error.shape[:-1], error.shape[-1] // positions, positions)

    def _assembled(self, patches: Float[Array, "images fan_in positions"]) -> Float[Array, "images below"]:
        """The transpose of ``patches``: every entry of a patch is added to where it was cut out."""
        channels, height, width = self.image_shape
        split = patches.reshape(patches.shape[0], channels, math.prod(self.kernel_shape), *self.positions)
        zero = jnp.zeros((), patches.dtype)
        image = jnp.zeros((patches.shape[0], channels, height, width), patches.dtype)
        for index, offsets in enumerate(self._offsets()):
            spread = [(0, 0, 0), (0, 0, 0)]
            axes = zip((height, width), offsets, self.positions, self.strides, self.padding, strict=True)
            for size, offset, positions, stride, (before, _) in axes:
                first = offset - before
                spread.append((first, size - first - (positions - 1) * stride - 1, stride - 1))
            image = image + jax.lax.pad(split[:, :, index], zero, spread)
        return image.reshape(patches.shape[0], channels * height * width)


def with_ones(hidden: Float[Array, "examples below"]) -> Float[Array, "examples features"]:
    """With a column of ones, which a bias multiplies."""
    return jnp.concatenate([hidden, jnp.ones_like(hidden[:, :1])], axis=1)
