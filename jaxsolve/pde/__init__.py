"""Meshes, tensorised Galerkin assembly and random families of operators."""

from ._assembly import GalerkinAssembler, stiffness_assembler
from ._diffusion import DiffusionFamily, LogNormalCoefficients, diffusion_family
from ._mesh import TriangleMesh

__all__ = [
    "DiffusionFamily",
    "GalerkinAssembler",
    "LogNormalCoefficients",
    "TriangleMesh",
    "diffusion_family",
    "stiffness_assembler",
]
