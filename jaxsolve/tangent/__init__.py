"""Tangent kernels of backpropagation and its alternatives."""

from ._files import KernelFile, load_kernels, save_kernels
from ._infinite_width import InfiniteWidthKernels, infinite_width_kernels
from ._kernel import kernel
from ._spectrum import KernelDrift, KernelSpectrum, kernel_drift, kernel_spectrum

__all__ = [
    "InfiniteWidthKernels",
    "KernelDrift",
    "KernelFile",
    "KernelSpectrum",
    "infinite_width_kernels",
    "kernel",
    "kernel_drift",
    "kernel_spectrum",
    "load_kernels",
    "save_kernels",
]
