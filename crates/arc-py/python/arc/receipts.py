"""What writing, flushing, verifying and backing up answer."""

from __future__ import annotations

from dataclasses import dataclass

from arc.errors import InvalidInputError


@dataclass(frozen=True)
class Rejected:
    """One line that a write refused."""

    line: int
    """Number of the line; the first is 1."""
    column: int
    """Byte in the line where the error is, the first is 1; 0 where a position means nothing."""
    reason: str
    """What was found and what was expected."""


@dataclass(frozen=True)
class Written:
    """Receipt of a write: everything in it was either stored or is named here."""

    points: int
    """Points stored."""
    rejected_points: int
    """Points refused, all of them counted."""
    rejected: list[Rejected]
    """The first 100 refusals, in the order of the lines."""
    durability: str
    """What the stored points survive: ``"disk"``, ``"process"`` or ``"memory"``."""
    replayed: bool = False
    """Whether this is the receipt of an earlier write with the same idempotency key, and nothing was stored now."""

    def raise_for_rejected(self) -> Written:
        """Raises :class:`arc.InvalidInputError` if anything was refused; returns the receipt otherwise.

        The good lines are stored in either case.
        """
        if self.rejected_points == 0:
            return self
        text = f"{self.rejected_points} points were rejected, {self.points} stored"
        for first in self.rejected[:1]:
            text += f"; line {first.line}, column {first.column}: {first.reason}"
        raise InvalidInputError(text)


@dataclass(frozen=True)
class RejectedRow:
    """One row of a file that an import refused."""

    row: int
    """Line of a CSV file, number of the row of a Parquet file; the first is 1."""
    column: str
    """Name of the column."""
    reason: str
    """What was found and what was expected."""


@dataclass(frozen=True)
class ImportReport:
    """What became of a file: every row of it was either stored or is counted here."""

    rows: int
    """Rows stored now."""
    rows_before: int
    """Rows that an earlier import with the same ``idempotency_key`` had stored."""
    rejected_rows: int
    """Rows refused, all of them counted."""
    rejected: list[RejectedRow]
    """The first 100 of them."""
    types: dict[str, str]
    """The columns of the file, and what they were taken for: ``"time"``, ``"tag"``, ``"float"`` …, ``"left out"``, ``"empty"``."""
    time_form: str | None
    """What times were taken for where they do not say it: ``"seconds since 1970"``, ``"day before month"``."""

    def raise_for_rejected(self) -> ImportReport:
        """Raises :class:`arc.InvalidInputError` if a row was refused; returns the report otherwise.

        The good rows are stored in either case.
        """
        if self.rejected_rows == 0:
            return self
        text = f"{self.rejected_rows} rows were rejected, {self.rows + self.rows_before} stored"
        for first in self.rejected[:1]:
            text += f"; row {first.row}, column {first.column}: {first.reason}"
        raise InvalidInputError(text)


@dataclass(frozen=True)
class Executed:
    """What a statement did that changes data."""

    statement: str
    """``"insert"``, ``"delete"``, ``"create"`` or ``"drop"``."""
    rows: int | None
    """Rows that an ``INSERT`` wrote; ``None`` for the others."""


@dataclass(frozen=True)
class FlushReport:
    """What a flush did."""

    rows: int
    """Rows written to Parquet files."""
    files: list[str]
    """Paths of the new files."""


@dataclass(frozen=True)
class Finding:
    """Something that a verification noticed."""

    severity: str
    """``"error"``, ``"warning"`` or ``"info"``."""
    path: str
    """The file or folder."""
    offset: int | None
    """Where in the file, if that can be told."""
    what: str
    """What was found and what was expected."""


@dataclass(frozen=True)
class VerifyReport:
    """What a verification says. Prints as text for people."""

    clean: bool
    """Whether there is no finding with the severity ``"error"``."""
    findings: list[Finding]
    """What was noticed."""
    files: int
    """Parquet files looked at."""
    rows: int
    """Rows in them."""
    text: str
    """The whole report as text."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class BackupReport:
    """What a backup did."""

    files: int
    """Parquet files that the backup has."""
    rows: int
    """Rows in them."""
    bytes: int
    """Their bytes."""
    kept_files: int
    """Files that were there already, from an earlier backup."""
    linked_files: int
    """Files that share their bytes with the data directory."""
    copied_files: int
    """Files that were copied."""
    removed_files: int
    """Files of an earlier backup that were removed."""
    log_bytes: int
    """Bytes of the log that were copied: points that were in no file."""


@dataclass(frozen=True)
class PushReport:
    """What a push did."""

    cuts: int
    """Commits of the other directory: 0 if it had everything."""
    files: int
    """Data files that it adopted."""
    rows: int
    """Rows in them."""
    bytes: int
    """Their bytes."""
    sent_bytes: int
    """Bytes that were sent; fewer where some were there of a push that was cut off."""
