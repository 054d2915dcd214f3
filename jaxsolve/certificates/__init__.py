"""Certificates: what can be said for sure about a frozen decoder, and about its risk from held-out losses."""

from ._bernstein import EmpiricalBernstein, empirical_bernstein
from ._contraction import (
    AbstractCertificate,
    ContractionCertificate,
    EnergyCertificate,
    contraction_certificate,
    energy_certificate,
    energy_norm,
    require_contraction,
)
from ._order_parameters import OrderParameters, order_parameters
from ._risk import count_violations, depth_risk

__all__ = [
    "AbstractCertificate",
    "ContractionCertificate",
    "EmpiricalBernstein",
    "EnergyCertificate",
    "OrderParameters",
    "contraction_certificate",
    "count_violations",
    "depth_risk",
    "empirical_bernstein",
    "energy_certificate",
    "energy_norm",
    "order_parameters",
    "require_contraction",
]
