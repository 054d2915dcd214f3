"""Certificates: what can be said for sure about a frozen decoder, alone or behind an encoder, and about its risk."""

from ._bernstein import EmpiricalBernstein, empirical_bernstein
from ._composition import ComposedCertificate, Composition, compose_risk, composed_certificate
from ._contraction import (
    AbstractCertificate,
    ContractionCertificate,
    EnergyCertificate,
    contraction_certificate,
    energy_certificate,
    energy_norm,
    require_contraction,
)
from ._diagnosis import DiagnosedTasks, Diagnosis, best_free_preconditioner, diagnose
from ._order_parameters import OrderParameters, order_parameters
from ._prompted import PromptedDiffusion, prompted_diffusion
from ._risk import count_violations, depth_risk

__all__ = [
    "AbstractCertificate",
    "ComposedCertificate",
    "Composition",
    "ContractionCertificate",
    "DiagnosedTasks",
    "Diagnosis",
    "EmpiricalBernstein",
    "EnergyCertificate",
    "OrderParameters",
    "PromptedDiffusion",
    "best_free_preconditioner",
    "compose_risk",
    "composed_certificate",
    "contraction_certificate",
    "count_violations",
    "depth_risk",
    "diagnose",
    "empirical_bernstein",
    "energy_certificate",
    "energy_norm",
    "order_parameters",
    "prompted_diffusion",
    "require_contraction",
]
