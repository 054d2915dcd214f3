"""What the trial cases call, in terms of the library. A method of a capability that is not built yet declines."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp

from jaxsolve import certificates, feedback, pde, solver, tangent

ROOT = Path(__file__).parents[2]
ACTIVATIONS = {"relu": feedback.Relu, "tanh": feedback.Tanh, "gelu": feedback.Gelu, "linear": feedback.Identity}
NOT_BUILT = {
    "model_kernel": "kernels of any function",
    "e0": "initial erosion",
    "e0_draws": "initial erosion",
    "linear_curve": "curves of a frozen kernel",
    "solve": "linear solves",
    "solve_vjp": "linear solves",
    "exact_curve": "population curves",
    "flow_L1": "closed population dynamics",
    "ode": "closed population dynamics",
}
QUICK = "feedback-reference/layerwise_gram/largest-error"


def _network(weights, activation, biases=None):
    return feedback.MLP(tuple(weights), None if biases is None else tuple(biases), ACTIVATIONS[activation]())


def _rule(rule, matrices):
    if rule == "bp":
        return feedback.Backprop()
    return {"fa": feedback.FeedbackAlignment, "dfa": feedback.DirectFeedbackAlignment}[rule](tuple(matrices))


class Adapter:
    """The library behind the neutral signatures of the trial cases."""

    def __getattr__(self, name):
        if name not in NOT_BUILT:
            raise AttributeError(name)

        def declines(*_, **__):
            raise NotImplementedError(NOT_BUILT[name])

        return declines

    def mlp_kernel(self, Ws, X, act, rule="bp", Bs=None, biases=None, block=None):
        if block is not None:
            raise NotImplementedError("kernels by blocks of rows")
        return tangent.kernel(_network(Ws, act, biases), jnp.asarray(X), _rule(rule, Bs))

    def fa_grads(self, Ws, Bs, X, R, act, rule):
        network = _network(Ws, act)
        return list(_rule(rule, Bs).gradients(network, network.forward(jnp.asarray(X)), jnp.asarray(R)).weights)

    def alignment(self, A, B):
        return feedback.alignment(jnp.asarray(A), jnp.asarray(B))

    def rollout(self, P, H, b, z0, L):
        return solver.rollout(*map(jnp.asarray, (P, H, b, z0)), depth=L)

    def shared_kernel(self, P, H, b, z0, L):
        return solver.rollout_kernel(*map(jnp.asarray, (P, H, b, z0)), depth=L)

    def rollout_loss_grad(self, P, H, b, z0, zstar, L):
        loss, gradient = solver.adjoint_gradient(*map(jnp.asarray, (P, H, b, z0, zstar)), depth=L)
        return {"loss": loss, "grad_P": gradient}

    def certificate(self, P, H):
        found = certificates.contraction_certificate(
            jnp.asarray(P), jnp.asarray(H)[None], jnp.zeros((1, len(H))), depth=0
        )
        return {"rho": found.spectral_radius[0], "norm": found.spectral_norm[0]}

    def count_violations(self, errors, bounds):
        return certificates.count_violations(jnp.asarray(errors)[:, None], jnp.asarray(bounds)[:, None])

    def eb_bound(self, losses, B, delta):
        found = certificates.empirical_bernstein(jnp.asarray(losses), clip=B, confidence_delta=delta)
        return {"bound": found.bound, "mean": found.mean, "clipped": found.clipped_share}

    def log_sf(self, q, D):
        return feedback.SquaredCosineLaw(D).log_survival(q)

    def load_matrix(self, path):
        return pde.load_matrix(path)

    def load_arrays(self, path):
        return pde.load_arrays(path)

    def cli(self, args, cwd):
        command = list(args) if args[0].startswith("-") else ["reproduce", *args]
        done = subprocess.run(
            [sys.executable, "-m", "jaxsolve", *command],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return {"code": done.returncode, "out": done.stdout, "err": done.stderr}

    def cli_names(self):
        return {"good": QUICK, "out_option": "--out", "resume_option": []}

    def same_results(self, dir_a, dir_b):
        def numbers(folder):
            lines = (Path(folder) / "records.jsonl").read_text().splitlines()
            return [{**json.loads(line), "seconds": None} for line in lines]

        return numbers(dir_a) == numbers(dir_b)
