"""Figures of where an error comes from: composition, sample sizes, diagnosis, a parametric equation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from ..certificates import DiagnosedTasks, diagnose, prompted_diffusion
from ..datasets import airfoil_mesh
from ..pde import (
    ParametricDiffusion,
    TriangleMesh,
    cosine_modes,
    interval_grid,
    quadrant_modes,
    square_grid,
    triangle_grid,
)
from ..preconditioners import Flexformer, position_tokens
from ..solver import (
    apply_operators,
    in_context_encoder,
    in_context_risk,
    prompt_statistics,
    regress_encoder,
)
from ..theories.error_causes import ErrorCauses
from ._figure import _STYLE
from ._gallery_setup import SEED, Systems, new_figure, trained
from ._parametric import draw_certified_errors
from ._parametric_data import certified_errors
from ._sources import draw_composition, draw_diagnosis, draw_scaling_axis
from ._sources_data import cause_shares, composition_path, scaling_axis


@rc_context(_STYLE)
def composition_bars() -> Figure:
    """Encoder floor and decoder part of the risk while a learnable-kernel decoder trains."""
    depth, saved = 3, 6
    generator = np.random.default_rng(SEED)
    training = prompted_diffusion(128, noise=0.265, generator=generator)
    held_out = prompted_diffusion(256, noise=0.265, generator=generator)
    systems = Systems(jnp.asarray(training.operators), jnp.asarray(training.solutions), jnp.zeros((128, 16)))
    start = Flexformer.initialise(position_tokens(16), key=jax.random.key(SEED))
    run = trained(start, systems, depth=depth, steps=60 * saved, saved=saved)
    sides = apply_operators(jnp.asarray(held_out.operators), jnp.asarray(held_out.solutions))
    data = composition_path(
        run.records[1:], held_out.estimates, sides, held_out.solutions, run.recorded_steps[1:], depth=depth
    )
    figure, axes = new_figure(1, 1, title="Risk behind an encoder, held-out tasks, depth 3", size=(6.5, 4.4))
    draw_composition(axes[0, 0], data)
    return figure


@rc_context(_STYLE)
def scaling_axes() -> Figure:
    """The error of an encoder over the size of a prompt, and its excess over the number of pretraining tasks."""
    size, replicates, noise = 12, 24, jnp.array(0.01)
    variances = np.linspace(1, 0.4, 3)
    covariance = jnp.diag(jnp.asarray(np.pad(variances, (0, size - 3))))
    keys = jax.random.split(jax.random.key(SEED), 3)
    flat = jax.random.normal(keys[0], (replicates * 1024, 3)) * jnp.sqrt(jnp.asarray(variances))[None, :]
    tasks = jnp.pad(flat, ((0, 0), (0, size - 3)))
    prompts, errors, exact = np.array([16, 128, 1024]), [], []
    for prompt_size in prompts:
        prompt = {"prompt_size": int(prompt_size), "noise_variance": noise}
        best = in_context_encoder(covariance, **prompt)
        tried = tasks[: 32 * replicates]
        answers = prompt_statistics(tried, key=keys[1], **prompt) @ best.T
        errors.append(np.sum(np.asarray(answers - tried) ** 2, axis=1).reshape(replicates, 32).mean(axis=1))
        exact.append(float(in_context_risk(best, covariance, **prompt)))
    prompt = {"prompt_size": 32, "noise_variance": noise}
    seen = prompt_statistics(tasks, key=keys[2], **prompt).reshape(replicates, 1024, size)
    shown = tasks.reshape(replicates, 1024, size)
    least = in_context_risk(in_context_encoder(covariance, **prompt), covariance, **prompt)
    counts, excess = np.array([64, 256, 1024]), []
    for count in counts:
        encoders = jax.vmap(regress_encoder)(seen[:, :count], shown[:, :count])
        risks = jax.vmap(lambda encoder: in_context_risk(encoder, covariance, **prompt))(encoders)
        excess.append(np.asarray(risks / least) - 1)
    figure, axes = new_figure(1, 2, title="Two sample sizes of an encoder of prompts, tasks of 12 entries and rank 3")
    names = ("pairs in a prompt m", "error of the best encoder"), ("pretraining tasks N", "excess risk over the best")
    for axis, sizes, values, line, (size_name, error_name) in zip(
        axes[0], (prompts, counts), (errors, excess), (np.array(exact), None), names, strict=True
    ):
        data = scaling_axis(sizes.astype(float), np.stack(values, axis=1), line)
        draw_scaling_axis(axis, data, size_name=size_name, error_name=error_name)
    return figure


@rc_context(_STYLE)
def error_diagnosis() -> Figure:
    """Four runs with one fault each, and what a diagnosis finds."""
    theory = ErrorCauses.quick()
    names = ("noisy prompts", "two training tasks", "multiples of identity", "one step")
    generator, found = np.random.default_rng(SEED), {}
    for name, situation, depth in zip(names, theory.situations, theory.depths, strict=True):
        loads = jnp.asarray(generator.standard_normal(situation.operators.shape[:2]))
        solutions = jnp.einsum("tij,tj->ti", situation.responses, loads, precision="highest")
        found[name] = diagnose(
            eqx.Partial(_constant, situation.preconditioner),
            _read,
            DiagnosedTasks(situation.training_operators, situation.training_solutions),
            DiagnosedTasks(situation.operators, solutions, situation.estimates),
            eqx.Partial(_constant, situation.best),
            depth=depth,
            converged_depth=64,
        )
    figure, axes = new_figure(1, 1, title="Diagnoses of four runs, each with one fault built in", size=(8.5, 4.4))
    draw_diagnosis(axes[0, 0], cause_shares(found))
    return figure


@rc_context(_STYLE)
def parametric_certificate() -> Figure:
    """Errors of the mean operator's inverse under a certificate that follows from the coefficient alone."""
    line, plane, airfoil = interval_grid(31), square_grid(7), triangle_grid(TriangleMesh(*airfoil_mesh()))
    families = {
        "interval, four cosines": ParametricDiffusion(line, cosine_modes(line)),
        "square, four quadrants": ParametricDiffusion(plane, quadrant_modes(plane)),
        "airfoil, log-affine": ParametricDiffusion(airfoil, cosine_modes(airfoil), link="log-affine"),
    }
    generator = np.random.default_rng(SEED)
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 4), axis=-1).reshape(-1, 4)
    parameters = np.concatenate([corners, generator.uniform(-1, 1, (112, 4))])
    figure, axes = new_figure(
        1,
        3,
        title="Diffusion on 112 tasks of the box and its 16 corners, P of the mean operator",
        size=(13.5, 4.2),
    )
    for axis, (name, family) in zip(axes[0], families.items(), strict=True):
        starts = generator.standard_normal((len(parameters), len(family.mean_operator)))
        draw_certified_errors(axis, certified_errors(family, parameters, starts, depth=12), name=name)
    return figure


def _constant(matrix, operators):
    return matrix


def _read(prompts):
    return prompts
