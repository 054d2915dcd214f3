"""Tangent kernels of backpropagation and its alternatives."""

from ._infinite_width import InfiniteWidthKernels, infinite_width_kernels
from ._kernel import kernel

__all__ = ["InfiniteWidthKernels", "infinite_width_kernels", "kernel"]
