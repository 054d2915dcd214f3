"""Backpropagation and its alternatives: networks, backward rules and the laws of their feedback."""

from ._activations import AbstractActivation, Gelu, Identity, Relu, Tanh
from ._alignment import SquaredCosineLaw, alignment
from ._erosion import InitialErosion, initial_erosion
from ._erosion_draws import TwoLayerForm, conditional_draw, erosion_draws, two_layer_erosion
from ._erosion_form import ErosionForm, erosion_form
from ._mixed_normal import MixedNormal
from ._network import MLP, ForwardPass, TangentFactor, weight_variances
from ._rules import (
    AbstractBackwardRule,
    AbstractSequentialRule,
    Backprop,
    DirectFeedbackAlignment,
    FeedbackAlignment,
)

__all__ = [
    "MLP",
    "AbstractActivation",
    "AbstractBackwardRule",
    "AbstractSequentialRule",
    "Backprop",
    "DirectFeedbackAlignment",
    "ErosionForm",
    "FeedbackAlignment",
    "ForwardPass",
    "Gelu",
    "Identity",
    "InitialErosion",
    "MixedNormal",
    "Relu",
    "SquaredCosineLaw",
    "TangentFactor",
    "Tanh",
    "TwoLayerForm",
    "alignment",
    "conditional_draw",
    "erosion_draws",
    "erosion_form",
    "initial_erosion",
    "two_layer_erosion",
    "weight_variances",
]
