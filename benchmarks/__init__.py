"""Comparisons with other ways to compute the same, each run as ``python -m benchmarks.NAME [--quick] [--out FILE]``.

Correctness comes first: every candidate gets the same inputs, and its result is compared before anything is timed.
Times are CPU seconds of one process on one core with one thread, in rounds that take the candidates in turn. A ratio is
the median over rounds, with an interval of at least 90 % for it, and a target counts as missed only where the whole
interval lies beyond it.
"""
