"""The algorithms of a rollout and of its adjoint by name, and the choice between them."""

from . import _accumulate, _checkpoint, _doubling
from ._blocks import Method, in_blocks
from ._panels import panels
from ._systems import Systems

ADJOINTS = {
    "accumulate": Method(_accumulate.forward, _accumulate.backward),
    "checkpoint": Method(_checkpoint.forward, _checkpoint.backward),
    "blocked": in_blocks(panels(1)),
    "panels": in_blocks(panels(8)),
    "doubling": in_blocks(Method(_doubling.forward, _doubling.backward)),
}

METHODS = ("auto", "scan", *ADJOINTS)
"""What ``method`` of [`rollout`][] may be."""


def choose_method(tasks: int, size: int, depth: int, *, itemsize: int = 8, memory: int = 2**30) -> str:
    """The method that ``"auto"`` stands for: a rule about shapes, applied when a program is traced.

    Matrices that carry residuals and adjoints from step to step cost as much as about `K` steps to form, and make each
    step cheaper; their powers replace many steps by one product. For `N` tasks of size `K` and depth `L`:

    - ``"accumulate"`` while `L ≤ K/2 + 16`, and wherever the matrices of one task do not fit the memory;
      ``"checkpoint"`` instead where its `N K L` residuals do not fit either;
    - ``"blocked"`` while `L < 4 K`;
    - ``"panels"`` while `L < 8 K`;
    - ``"doubling"`` beyond.

    The bounds were measured on one core of a CPU, in double precision, for `K` from 4 to 256. There, no choice was
    slower than differentiating the plain steps automatically.

    Parameters
    ----------
    tasks, size, depth
        `N`, `K` and `L`.
    itemsize
        Bytes of a number.
    memory
        Bytes that residuals or matrices may take.

    >>> [choose_method(64, 32, depth) for depth in (32, 64, 128, 256)]
    ['accumulate', 'blocked', 'panels', 'doubling']
    >>> choose_method(10**6, 32, 32)
    'checkpoint'
    """
    if depth <= size / 2 + 16 or 8 * size * size * itemsize > memory:
        return "accumulate" if tasks * size * depth * itemsize <= memory else "checkpoint"
    if depth < 4 * size:
        return "blocked"
    return "panels" if depth < 8 * size else "doubling"


def checked_method(method: str, systems: Systems, depth: int) -> str:
    """The method meant, with "auto" resolved, else a ``ValueError``."""
    if method not in METHODS:
        raise ValueError(f"method is one of {', '.join(METHODS)}; got {method!r}.")
    tasks, size = systems.initial.shape
    itemsize = systems.initial.dtype.itemsize
    return choose_method(tasks, size, depth, itemsize=itemsize) if method == "auto" else method
