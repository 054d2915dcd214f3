"""Backpropagation and its alternatives: networks, backward rules and the laws of their feedback."""

from ._activations import AbstractActivation, Elementwise, Gelu, Identity, Relu, Tanh
from ._alignment import SquaredCosineLaw, alignment
from ._connections import AbstractConnection, Convolution, Dense, TangentFactor
from ._convolutional import ConvolutionalNetwork
from ._equinox import from_equinox
from ._learned_feedback import KolenPollack, ResampledSignSymmetry, SignSymmetry
from ._network import MLP, AbstractNetwork, ForwardPass, weight_variances
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
    "AbstractConnection",
    "AbstractNetwork",
    "AbstractSequentialRule",
    "Backprop",
    "Convolution",
    "ConvolutionalNetwork",
    "Dense",
    "DirectFeedbackAlignment",
    "Elementwise",
    "FeedbackAlignment",
    "ForwardPass",
    "Gelu",
    "Identity",
    "KolenPollack",
    "Relu",
    "ResampledSignSymmetry",
    "SignSymmetry",
    "SquaredCosineLaw",
    "TangentFactor",
    "Tanh",
    "alignment",
    "from_equinox",
    "weight_variances",
]
