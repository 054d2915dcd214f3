"""Backpropagation and its alternatives: networks, backward rules and the laws of their feedback."""

from ._activations import AbstractActivation, Elementwise, Erf, Gelu, Identity, Relu, Tanh
from ._alignment import SquaredCosineLaw, alignment
from ._capacity import SurprisalLaw, alignment_cost, chance_threshold_cost, draw_squared_cosines, log_cap_fraction
from ._connections import AbstractConnection, Convolution, Dense, TangentFactor
from ._convolutional import ConvolutionalNetwork
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
from ._equinox import from_equinox
from ._erosion import InitialErosion, initial_erosion
from ._erosion_draws import TwoLayerForm, conditional_draw, erosion_draws, two_layer_erosion
from ._erosion_form import ErosionForm, erosion_form
from ._learned_feedback import KolenPollack, ResampledSignSymmetry, SignSymmetry
from ._mixed_normal import MixedNormal
from ._network import MLP, AbstractNetwork, ForwardPass, initial_weights, weight_variances
from ._random_subspace import DeletedShareLaw, alignment_constraints
from ._rules import AbstractBackwardRule, AbstractSequentialRule, Backprop, DirectFeedbackAlignment, FeedbackAlignment

__all__ = [
    "MLP",
    "AbstractActivation",
    "AbstractBackwardRule",
    "AbstractConnection",
    "AbstractFeedbackEnsemble",
    "AbstractNetwork",
    "AbstractSequentialRule",
    "AnisotropicFeedback",
    "Backprop",
    "Convolution",
    "ConvolutionalNetwork",
    "DeletedShareLaw",
    "Dense",
    "DirectFeedbackAlignment",
    "Elementwise",
    "Erf",
    "ErosionForm",
    "FeedbackAlignment",
    "FixedAxisFeedback",
    "ForwardPass",
    "Gelu",
    "Identity",
    "InitialErosion",
    "IsotropicFeedback",
    "KolenPollack",
    "LowRankFeedback",
    "MixedNormal",
    "OrthogonalFeedback",
    "RandomAxisFeedback",
    "Relu",
    "ResampledSignSymmetry",
    "SignFeedback",
    "SignSymmetry",
    "SparseFeedback",
    "SquaredCosineLaw",
    "SubspaceFeedback",
    "SurprisalLaw",
    "TangentFactor",
    "Tanh",
    "TwoLayerForm",
    "alignment",
    "alignment_constraints",
    "alignment_cost",
    "chance_threshold_cost",
    "conditional_draw",
    "coverage",
    "draw_squared_cosines",
    "erosion_draws",
    "erosion_form",
    "finite_sample_coverage",
    "from_equinox",
    "initial_erosion",
    "initial_weights",
    "log_cap_fraction",
    "prior_coverage",
    "sampled_second_moment",
    "two_layer_erosion",
    "weight_variances",
    "worst_coverage",
]
