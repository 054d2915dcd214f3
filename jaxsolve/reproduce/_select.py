"""Choosing rows by pattern."""

import difflib
import fnmatch
from collections.abc import Sequence

from ..claims import Claim


class NoMatchError(ValueError):
    """A pattern that matches no row; the message offers close ones."""


def select(claims: Sequence[Claim], patterns: Sequence[str]) -> list[Claim]:
    """Rows whose id matches any pattern, in ledger order; all rows where there is no pattern.

    A pattern is a shell pattern on the whole id. Without ``*``, ``?`` or ``[`` it also selects every row below it:
    ``feedback-reference`` or ``feedback-reference/alignment_law``.

    Raises
    ------
    NoMatchError
        For the first pattern that matches nothing.
    """
    if not patterns:
        return list(claims)
    chosen: set[str] = set()
    for pattern in patterns:
        matches = {claim.id for claim in claims if _matches(claim.id, pattern)}
        if not matches:
            raise NoMatchError(_no_match(claims, pattern))
        chosen |= matches
    return [claim for claim in claims if claim.id in chosen]


def _matches(claim_id: str, pattern: str) -> bool:
    below = not set("*?[") & set(pattern) and claim_id.startswith(pattern.rstrip("/") + "/")
    return below or fnmatch.fnmatchcase(claim_id, pattern)


def _no_match(claims: Sequence[Claim], pattern: str) -> str:
    ids = [claim.id for claim in claims]
    above = {"/".join(claim_id.split("/")[:depth]) for claim_id in ids for depth in (1, 2)}
    theories = {name.split("/")[1] for name in above if "/" in name}
    close = difflib.get_close_matches(pattern, [*ids, *above], n=5, cutoff=0.6)
    likely = difflib.get_close_matches(pattern, theories, n=3, cutoff=0.6)
    close += [name for name in sorted(above) if name.split("/")[-1] in likely]
    close += [name for name in sorted(above) if pattern.strip("*/") and pattern.strip("*/") in name]
    offer = f" Close matches: {', '.join(dict.fromkeys(close))}." if close else " 'jaxsolve list' shows all ids."
    return f"No claim matches {pattern!r}.{offer}"
