"""How large a tangent kernel is, said before it is made."""

import logging

import jax

from ..feedback import AbstractNetwork

LOGGER = logging.getLogger("jaxsolve.tangent")
LARGE = 2**28
"""Bytes from which a kernel is announced in the log."""


def kernel_bytes(network: AbstractNetwork, examples: int, others: int | None = None) -> int:
    """Bytes that [`kernel`][] takes at its peak: one kernel, the errors of all layers, and a tile of rows.

    Parameters
    ----------
    network
        Its widths and dtype count.
    examples, others
        Numbers of examples of the first and of the second index; one number for both by default.

    >>> import jax
    >>> network = MLP.initialise((16, 64, 64, 4), dtype="float32", key=jax.random.key(0))
    >>> kernel_bytes(network, 512) // 2**20
    22
    """
    others = examples if others is None else others
    outputs, hidden = network.widths[-1], sum(network.widths[:-1])
    errors = (examples + others) * hidden * (1 + outputs)
    tile = 2 * min(examples * outputs, 256) * others * outputs
    return (examples * others * outputs**2 + errors + min(tile, 2**21)) * network.dtype.itemsize


def check_memory(needed: int, shape: tuple[int, int]) -> None:
    """Announce a large array in the log, and refuse one that cannot fit."""
    free = free_bytes()
    size = f"A tangent kernel of shape {shape} takes {needed / 2**30:.3g} GiB"
    if free is not None and needed > free:
        raise ValueError(
            f"{size}, and {free / 2**30:.3g} GiB are free. Use fewer examples, or jaxsolve.tangent.operator, which "
            "multiplies by the kernel without forming it."
        )
    if needed >= LARGE:
        LOGGER.info(size)


def free_bytes() -> int | None:
    """Memory that is free on the default device, or None where that is not known."""
    device = jax.devices()[0]
    statistics = device.memory_stats() if device.platform != "cpu" else None
    if statistics and "bytes_limit" in statistics:
        return statistics["bytes_limit"] - statistics["bytes_in_use"]
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    return None
