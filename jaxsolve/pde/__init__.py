"""Meshes, tensorised Galerkin assembly, random and parametric families of operators, matrices from files."""

from ._assembly import GalerkinAssembler, stiffness_assembler
from ._diffusion import DiffusionFamily, LogNormalCoefficients, diffusion_family
from ._discretisation import Discretisation, interval_grid, square_grid, triangle_grid
from ._mesh import TriangleMesh
from ._parametric import (
    EllipticityCertificate,
    ParametricDiffusion,
    cosine_modes,
    ellipticity_certificate,
    quadrant_modes,
    require_elliptic,
)
from ._readers import load_arrays, load_matrix

__all__ = [
    "DiffusionFamily",
    "Discretisation",
    "EllipticityCertificate",
    "GalerkinAssembler",
    "LogNormalCoefficients",
    "ParametricDiffusion",
    "TriangleMesh",
    "cosine_modes",
    "diffusion_family",
    "ellipticity_certificate",
    "interval_grid",
    "load_arrays",
    "load_matrix",
    "quadrant_modes",
    "require_elliptic",
    "square_grid",
    "stiffness_assembler",
    "triangle_grid",
]
