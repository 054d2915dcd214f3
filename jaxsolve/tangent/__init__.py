"""Tangent kernels of backward rules: whole, by products, at infinite width, and of any function."""

from ._empirical import empirical, empirical_operator
from ._files import KernelFile, load_kernels, save_kernels
from ._infinite_width import InfiniteWidthKernels, infinite_width_kernels
from ._kernel import kernel
from ._memory import kernel_bytes
from ._operator import choose_form, operator
from ._output_kernel import output_kernel
from ._quadrature import SpectralEstimate, SpectralQuadrature, lanczos_quadrature
from ._spectrum import KernelDrift, KernelSpectrum, SpectralEnds, extreme_eigenvalues, kernel_drift, kernel_spectrum

__all__ = [
    "InfiniteWidthKernels",
    "KernelDrift",
    "KernelFile",
    "KernelSpectrum",
    "SpectralEnds",
    "SpectralEstimate",
    "SpectralQuadrature",
    "choose_form",
    "empirical",
    "empirical_operator",
    "extreme_eigenvalues",
    "infinite_width_kernels",
    "kernel",
    "kernel_bytes",
    "kernel_drift",
    "kernel_spectrum",
    "lanczos_quadrature",
    "load_kernels",
    "operator",
    "output_kernel",
    "save_kernels",
]
