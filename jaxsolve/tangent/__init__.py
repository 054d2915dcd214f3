"""Tangent kernels of backward rules: whole, by products, and of any function."""

from ._empirical import empirical, empirical_operator
from ._kernel import kernel
from ._memory import kernel_bytes
from ._operator import choose_form, operator

__all__ = ["choose_form", "empirical", "empirical_operator", "kernel", "kernel_bytes", "operator"]
