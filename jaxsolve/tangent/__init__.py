"""Tangent kernels of backward rules: whole, by products, and of any function."""

from ._empirical import empirical, empirical_operator
from ._kernel import kernel
from ._memory import kernel_bytes
from ._operator import choose_form, operator
from ._output_kernel import output_kernel

__all__ = [
    "InfiniteWidthKernels",
    "KernelDrift",
    "KernelFile",
    "KernelSpectrum",
    "choose_form",
    "empirical",
    "empirical_operator",
    "infinite_width_kernels",
    "kernel",
    "kernel_bytes",
    "kernel_drift",
    "kernel_spectrum",
    "load_kernels",
    "operator",
    "output_kernel",
    "save_kernels",
]
