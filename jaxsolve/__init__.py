"""Predict, simulate and judge the training dynamics of neural networks and learned solvers."""

__version__ = "0.1.0"
