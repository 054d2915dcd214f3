"""What the trial cases call, in terms of the library. A method of a capability that is not built yet declines."""

import json
import os
import subprocess
import sys
from itertools import accumulate, pairwise
from pathlib import Path

import jax
import jax.numpy as jnp

from jaxsolve import certificates, curves, feedback, monte_carlo, pde, solver, tangent
from jaxsolve._results import RESULTS

ROOT = Path(__file__).parents[2]
ACTIVATIONS = {"relu": feedback.Relu, "tanh": feedback.Tanh, "gelu": feedback.Gelu, "linear": feedback.Identity}
NOT_BUILT = {
    "solve": "linear solves",
    "solve_vjp": "linear solves",
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
        return tangent.kernel(_network(Ws, act, biases), jnp.asarray(X), _rule(rule, Bs), block=block)

    def model_kernel(self, apply, params, X, block=None):
        parameters = {name: jnp.asarray(value) for name, value in params.items()}
        return tangent.empirical(apply, parameters, jnp.asarray(X), block=block)

    def fa_grads(self, Ws, Bs, X, R, act, rule):
        network = _network(Ws, act)
        return list(_rule(rule, Bs).gradients(network, network.forward(jnp.asarray(X)), jnp.asarray(R)).weights)

    def linear_curve(self, K, r0, eta_over_n, steps):
        kernel = jnp.asarray(K)
        return curves.predict_descent(
            kernel,
            jnp.asarray(r0),
            learning_rate=jnp.asarray(eta_over_n, kernel.dtype),
            loss_divisor=1,
            steps=jnp.asarray(steps),
            symmetric=bool(jnp.array_equal(kernel, kernel.T)),
        ).loss

    def e0(self, Ws, Bs, X, R, act, rule):
        network = _network(Ws, act)
        return feedback.initial_erosion(network, jnp.asarray(X), jnp.asarray(R), _rule(rule, Bs)).erosion

    def alignment(self, A, B):
        return feedback.alignment(jnp.asarray(A), jnp.asarray(B))

    def e0_draws(self, Ws, X, R, sigmas, draws, seed, chunk):
        network, cotangent = _network(Ws, "relu"), jnp.asarray(R)
        forward = network.forward(jnp.asarray(X))
        exact = feedback.Backprop().gradients(network, forward, cotangent).weights
        shapes = list(pairwise(network.widths[1:]))
        ends = [0, *accumulate(rows * columns for rows, columns in shapes)]

        def erosion(*, key):
            entries = jax.random.normal(key, (ends[-1],), network.dtype)
            pieces = zip(sigmas, shapes, pairwise(ends), strict=True)
            matrices = [sigma * entries[slice(*ends)].reshape(shape) for sigma, shape, ends in pieces]
            sent = feedback.FeedbackAlignment(matrices).gradients(network, forward, cotangent).weights
            speeds = [sum(jnp.sum(g * other) for g, other in zip(exact, side, strict=True)) for side in (sent, exact)]
            return 1 - speeds[0] / speeds[1]

        return monte_carlo(erosion, jax.random.key(seed), draws, chunk=chunk, keep=True).values

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

    def flow_L1(self, h, s, p0, t):
        return curves.one_step_mode_flow(*map(jnp.asarray, (p0, h, s)), time=jnp.asarray(t))

    def ode(self, rhs, y0, t):
        found = curves.integrate(rhs, jnp.asarray(y0), times=jnp.asarray([t]), throw=False)
        return {"y": found.states[-1], "ok": (found.result == RESULTS.successful).all()}

    def log_sf(self, q, D):
        return feedback.SquaredCosineLaw(D).log_survival(q)

    def exact_curve(self, lam, amp2, eta, steps, floor):
        modes = len(lam)
        found = solver.encoder_risk_curve(
            jnp.diag(jnp.sqrt(modes * jnp.asarray(amp2, float))),
            jnp.zeros((modes, modes)),
            jnp.diag(jnp.asarray(lam, float)),
            noise_variance=jnp.asarray(floor, float),
            learning_rate=jnp.asarray(eta, float),
            steps=jnp.asarray(steps, int),
        )
        return {"curve": found.risk, "stable": bool(found.stable)}

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
