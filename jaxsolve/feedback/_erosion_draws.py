"""Draws of the initial erosion over random feedback: by the backward pass, by shorter forms of it, and in law."""

import math
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from .._montecarlo import draws
from .._types import ArrayLike, Key, Scalar
from ._erosion import initial_erosion
from ._erosion_form import ErosionForm, Matrices, erosion_form
from ._mixed_normal import MixedNormal
from ._network import MLP, gaussian_matrices, weight_variances
from ._rules import DirectFeedbackAlignment, FeedbackAlignment

BLOCKS = {"backward": 8, "fast": 8, "tensor": 64, "conditional": 256}
"""Draws that are computed side by side, by method."""


def erosion_draws(
    network: MLP,
    inputs: Num[ArrayLike, "examples features"],
    cotangent: Float[Array, "examples outputs"],
    *,
    count: int,
    variances: Float[ArrayLike, " hidden"] | Sequence[float] | None = None,
    direct: bool = False,
    method: str = "conditional",
    block: int | None = None,
    throw: bool = True,
    key: Key,
) -> Float[Array, " draws"]:
    """Independent draws of the initial erosion under Gaussian feedback, `B_l ~ N(0, σ_l²)`.

    The methods:

    - ``"conditional"``: all matrices but the largest are drawn. Given them, the erosion is affine in that one, hence
      normal, and is drawn as one number: exact in law, with `n_k n_{k+1}` random numbers fewer. With two hidden
      layers, and `B_1` the larger matrix, examples are summed beforehand as well; direct feedback and one hidden layer
      need a single random number.
    - ``"tensor"``: two hidden layers, sequential feedback. The examples are summed beforehand into
      `T_{bac} = Σ_n M_1[n,a] φ'_2[n,b] δ_L[n,c]`, of `n_1 n_2 n_L` numbers, and a draw costs twice that many
      operations.
    - ``"fast"``: [`ErosionForm.sequential`][] or [`ErosionForm.direct`][]; no weight gradient per draw.
    - ``"backward"``: [`initial_erosion`][] for each draw: both backward passes, as the definition says.

    The last three draw the same matrices from the same key, and agree draw by draw to rounding.

    Parameters
    ----------
    network, inputs, cotangent, throw
        As in [`initial_erosion`][].
    count
        How many draws.
    variances
        `σ_1², …, σ_{L−1}²`; by default those of the weights that are replaced.
    direct
        Direct feedback alignment in the place of feedback alignment.
    method
        One of the above.
    block
        Draws computed side by side; the result does not depend on it.
    key
        A typed key.

    Raises
    ------
    ValueError
        For a method that does not exist or does not apply, and as [`initial_erosion`][] and the Monte Carlo driver do.

    >>> network = MLP.initialise((3, 8, 8, 2), key=jax.random.key(0))
    >>> inputs, cotangent = jnp.eye(3), jnp.ones((3, 2))
    >>> erosion_draws(network, inputs, cotangent, count=5, key=jax.random.key(1)).shape
    (5,)
    """
    if method not in BLOCKS:
        raise ValueError(f"method is one of {', '.join(map(repr, BLOCKS))}; got {method!r}.")
    if method == "tensor" and (direct or network.depth != 2):
        raise ValueError(
            f"The tensor form is for feedback alignment with two hidden layers; got direct={direct} and "
            f"{network.depth} hidden layers. Use method='fast'."
        )
    form = erosion_form(network, inputs, cotangent, throw=throw)
    if variances is None:
        variances = weight_variances(network.widths)[1:]
    spread = form.checked_variances(variances)
    if method == "conditional":
        draw = _conditional(form, spread, direct)
    else:
        evaluate = _evaluator(form, network, inputs, cotangent, direct, method)
        draw = eqx.Partial(_drawn, evaluate, form, spread, direct=direct)
    return draws(draw, key, count, block=block or BLOCKS[method])


class TwoLayerForm(eqx.Module):
    """The erosion of feedback alignment with two hidden layers, with the examples summed.

    `e_0 = hidden share − ⟨C, B_2⟩ − Σ_{abc} B_1[a,b] T[b,a,c] B_2[b,c]`, with `C = M_2^T δ_L` and
    `T[b,a,c] = Σ_n M_1[n,a] φ'_2[n,b] δ_L[n,c]` in the letters of [`ErosionForm`][].

    Raises
    ------
    ValueError
        When made from a form with another number of hidden layers.
    """

    tensor: Float[Array, "second first outputs"]
    coefficients: Float[Array, "second outputs"]
    hidden_share: Scalar

    @classmethod
    def of(cls, form: ErosionForm) -> "TwoLayerForm":
        """Sum over the examples: `2 N n_1 n_2 n_L` operations, once."""
        if len(form.gates) != 2:
            raise ValueError(f"The tensor form is for two hidden layers; got {len(form.gates)}.")
        return _two_layer_form(form)

    def sequential(self, feedback: Matrices) -> Scalar:
        """The erosion with `B_1` and `B_2`, as [`ErosionForm.sequential`][] gives it."""
        first, second = feedback
        signal = jnp.einsum("bac,bc->ba", self.tensor, second, precision="highest")
        return self.hidden_share - jnp.sum(self.coefficients * second) - jnp.sum(first.T * signal)


@eqx.filter_jit
def _two_layer_form(form: ErosionForm) -> TwoLayerForm:
    examples, outputs = form.cotangent.shape
    pairs = (form.gates[1][:, :, None] * form.cotangent[:, None, :]).reshape(examples, -1)
    tensor = jnp.matmul(pairs.T, form.sensitivities[0], precision="highest").reshape(-1, outputs, form.shapes()[0][0])
    return TwoLayerForm(jnp.swapaxes(tensor, 1, 2), form.direct_coefficients()[1], form.hidden_share)


def two_layer_erosion(form: ErosionForm, variances: Float[ArrayLike, " hidden"] | Sequence[float]) -> MixedNormal:
    """The exact law of the erosion of feedback alignment with two hidden layers and Gaussian feedback.

    Parameters
    ----------
    form
        From [`erosion_form`][].
    variances
        `σ_1²` and `σ_2²`.

    Raises
    ------
    ValueError
        For another number of hidden layers, and where there are not two variances.
    """
    return _two_layer_erosion(TwoLayerForm.of(form), form.checked_variances(variances))


@eqx.filter_jit
def _two_layer_erosion(form: TwoLayerForm, variances) -> MixedNormal:
    blocks = jnp.einsum("bac,bad->bcd", form.tensor, form.tensor, precision="highest")
    finite = jnp.all(jnp.isfinite(blocks))
    eigenvalues, vectors = jnp.linalg.eigh(jnp.where(finite, blocks, 0))
    linear = jnp.einsum("bc,bck->bk", form.coefficients, vectors, precision="highest")
    first, second = variances
    return MixedNormal(
        mean=form.hidden_share,
        linear=jnp.sqrt(second) * linear.ravel(),
        quadratic=first * second * jnp.maximum(eigenvalues, 0).ravel(),
    )


def _drawn(evaluate: Callable[[Matrices], Scalar], form: ErosionForm, variances, *, direct: bool, key: Key) -> Scalar:
    return evaluate(_matrices(form.shapes(direct=direct), jnp.sqrt(variances), key))


def _matrices(shapes: Sequence[tuple[int, int]], deviations: Sequence[Scalar] | Array, key: Key) -> tuple[Array, ...]:
    normal = gaussian_matrices(shapes, [1.0] * len(shapes), dtype=deviations[0].dtype, key=key) if shapes else ()
    return tuple(deviation * matrix for deviation, matrix in zip(deviations, normal, strict=True))


def _evaluator(form, network, inputs, cotangent, direct, method) -> Callable[[Matrices], Scalar]:
    if method == "backward":
        return eqx.Partial(_backward, network, jnp.asarray(inputs), cotangent, direct)
    if method == "tensor":
        return TwoLayerForm.of(form).sequential
    return form.direct if direct else form.sequential


def _backward(network: MLP, inputs: Array, cotangent: Array, direct: bool, feedback: Matrices) -> Scalar:
    rule = DirectFeedbackAlignment(feedback) if direct else FeedbackAlignment(feedback)
    return initial_erosion(network, inputs, cotangent, rule, throw=False).erosion


def _conditional(form: ErosionForm, variances: Array, direct: bool) -> Callable[..., Scalar]:
    shapes = form.shapes()
    if direct or len(shapes) <= 1:
        return eqx.Partial(_normal, form.hidden_share, jnp.sqrt(form.direct_variance(variances)))
    largest = max(range(len(shapes)), key=lambda layer: math.prod(shapes[layer]))
    if len(shapes) == 2 and largest == 0:
        return two_layer_erosion(form, variances).draw
    return eqx.Partial(conditional_draw, form, variances, largest)


def _normal(mean: Scalar, deviation: Scalar, *, key: Key) -> Scalar:
    return mean - deviation * jax.random.normal(key, (), mean.dtype)


def conditional_draw(form: ErosionForm, variances: Float[Array, " hidden"], layer: int, *, key: Key) -> Scalar:
    """One draw of the erosion of feedback alignment, without the matrix `B_k` of one hidden layer.

    The terms of the layers above `k` do not contain `B_k`, and all others are linear in it, with the derivative
    `U_k^T δ_{k+1}`, where `U_1 = M_1` and `U_l = M_l + φ'_l ⊙ (U_{l−1} B_{l−1})`. Given the other matrices the erosion
    is therefore normal with standard deviation `σ_k ‖U_k^T δ_{k+1}‖`.

    Parameters
    ----------
    form, variances
        As in [`two_layer_erosion`][], for any number of hidden layers.
    layer
        The hidden layer `k`, counted from zero.
    key
        A typed key.
    """
    shapes = form.shapes()
    drawn = [other for other in range(len(shapes)) if other != layer]
    deviations = [jnp.sqrt(variances[other]) for other in (*drawn, layer)]
    *matrices, last = _matrices([*(shapes[other] for other in drawn), (1, 1)], deviations, key)
    feedback = dict(zip(drawn, matrices, strict=True))
    erosion, delta = form.hidden_share, form.cotangent
    for above in range(len(shapes) - 1, layer, -1):
        signal = jnp.matmul(delta, feedback[above].T, precision="highest")
        erosion = erosion - jnp.sum(form.sensitivities[above] * signal)
        delta = signal * form.gates[above]
    upward = form.sensitivities[0]
    for below in range(layer):
        sent = jnp.matmul(upward, feedback[below], precision="highest")
        upward = form.sensitivities[below + 1] + form.gates[below + 1] * sent
    derivative = jnp.matmul(upward.T, delta, precision="highest")
    return erosion - last[0, 0] * jnp.sqrt(jnp.sum(derivative**2))
