"""Backpropagation and its alternatives: networks, backward rules and the laws of their feedback."""

from ._activations import AbstractActivation, Erf, Gelu, Identity, Relu, Tanh
from ._alignment import SquaredCosineLaw, alignment
from ._capacity import SurprisalLaw, alignment_cost, chance_threshold_cost, draw_squared_cosines, log_cap_fraction
from ._ensembles import (
    AbstractFeedbackEnsemble,
    AnisotropicFeedback,
    FixedAxisFeedback,
    IsotropicFeedback,
    LowRankFeedback,
    OrthogonalFeedback,
    RandomAxisFeedback,
    SignFeedback,
    SparseFeedback,
    SubspaceFeedback,
    coverage,
    finite_sample_coverage,
    prior_coverage,
    sampled_second_moment,
    worst_coverage,
)
from ._network import MLP, ForwardPass, TangentFactor, weight_variances
from ._random_subspace import DeletedShareLaw, alignment_constraints
from ._rules import AbstractBackwardRule, AbstractSequentialRule, Backprop, DirectFeedbackAlignment, FeedbackAlignment

__all__ = [
    "MLP",
    "AbstractActivation",
    "AbstractBackwardRule",
    "AbstractFeedbackEnsemble",
    "AbstractSequentialRule",
    "AnisotropicFeedback",
    "Backprop",
    "DeletedShareLaw",
    "DirectFeedbackAlignment",
    "Erf",
    "FeedbackAlignment",
    "FixedAxisFeedback",
    "ForwardPass",
    "Gelu",
    "Identity",
    "IsotropicFeedback",
    "LowRankFeedback",
    "OrthogonalFeedback",
    "RandomAxisFeedback",
    "Relu",
    "SignFeedback",
    "SparseFeedback",
    "SquaredCosineLaw",
    "SubspaceFeedback",
    "SurprisalLaw",
    "TangentFactor",
    "Tanh",
    "alignment",
    "alignment_constraints",
    "alignment_cost",
    "chance_threshold_cost",
    "coverage",
    "draw_squared_cosines",
    "finite_sample_coverage",
    "log_cap_fraction",
    "prior_coverage",
    "sampled_second_moment",
    "weight_variances",
    "worst_coverage",
]
