"""``python -m jaxsolve``."""

from .cli import main

main()
