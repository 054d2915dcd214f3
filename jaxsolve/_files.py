"""Writing files so that a kill leaves either the old content or the new one."""

import hashlib
import os
from pathlib import Path


def atomic_write(path: Path, content: bytes) -> str:
    """Write ``content`` to ``path`` through a temporary file in the same folder; return its SHA-256.

    The temporary file is synchronised and renamed over ``path``, and removed where writing fails.

    Raises
    ------
    OSError
        As the file system reports it; ``path`` is then unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return hashlib.sha256(content).hexdigest()


def sha256(path: Path) -> str | None:
    """SHA-256 of a file, or ``None`` where it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
