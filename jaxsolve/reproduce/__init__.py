"""Select, run, record, tabulate and report; no mathematics."""

from ._records import KEYS, RECORDS, SCHEMA, Folder, FolderError, Record, read_lines
from ._report import write_report
from ._run import SCALES, Group, Outcome, configuration, expected, groups, outcome, reproduce
from ._select import NoMatchError, select
from ._table import number, summary, verdict_table

__all__ = [
    "KEYS",
    "RECORDS",
    "SCALES",
    "SCHEMA",
    "Folder",
    "FolderError",
    "Group",
    "NoMatchError",
    "Outcome",
    "Record",
    "configuration",
    "expected",
    "groups",
    "number",
    "outcome",
    "read_lines",
    "reproduce",
    "select",
    "summary",
    "verdict_table",
    "write_report",
]
