"""Tangent kernels of backpropagation and its alternatives."""

from ._kernel import kernel

__all__ = ["kernel"]
