"""Tangent kernels of backward rules: whole, by products, and of any function."""

from ._empirical import empirical, empirical_operator
from ._files import KernelFile, load_kernels, save_kernels
from ._infinite_width import InfiniteWidthKernels, infinite_width_kernels
from ._kernel import kernel
from ._memory import kernel_bytes
from ._operator import choose_form, operator
from ._output_kernel import output_kernel
from ._spectrum import KernelDrift, KernelSpectrum, kernel_drift, kernel_spectrum

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
