"""The learned solver: a preconditioned Richardson iteration of fixed depth, and its exact gradient."""

from ._adjoint import adjoint_gradient
from ._rollout import rollout, training_loss, trajectory

__all__ = ["adjoint_gradient", "rollout", "training_loss", "trajectory"]
