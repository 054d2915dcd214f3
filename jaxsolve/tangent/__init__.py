"""Tangent kernels of backpropagation and its alternatives."""

from ._kernel import kernel
from ._output_kernel import output_kernel

__all__ = ["kernel", "output_kernel"]
