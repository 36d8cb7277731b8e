"""The exceptions of the engine: one class for each thing a caller can do about them.

All are subclasses of :class:`Error`. Data that is no table at all raises ``TypeError`` as usual.
"""

from __future__ import annotations


class Error(Exception):
    """Base of all exceptions of the engine."""


class InvalidInputError(Error, ValueError):
    """The request can never succeed as it is; change it."""


class NotFoundError(Error, LookupError):
    """The database, table or column does not exist."""

    database: str | None = None
    """Where a table was looked for."""
    table: str | None = None
    """The table that is not there."""


class SchemaConflictError(Error):
    """The write contradicts the type that a column has, or its role as tag or field. Nothing of it is stored."""


class BusyError(Error):
    """The engine is overloaded, or another process has the data directory open; the same request may succeed later."""

    retry_after: float | None = None
    """Seconds after which a retry is worth while, where that is known."""


class IoError(Error, OSError):
    """The operating system refused; ``errno`` says why."""


class StorageFullError(IoError):
    """The disk is full; the same request may succeed once there is room."""


class QueryTimeoutError(Error, TimeoutError):
    """The query ran longer than ``query_timeout``."""


class CorruptError(Error):
    """Bytes on disk are not what was written there; the message names the file and the byte."""


class ClosedError(Error):
    """The engine is closed, or closed to writes after a failed sync, or another process opened it (see fork)."""


class AccessDeniedError(Error, PermissionError):
    """The server does not let this token in, or not this far."""


class OutcomeUnknownError(Error):
    """The disk failed while the request was on its way: whether it was done is known when the engine is opened again."""


class InternalError(Error):
    """A bug of the engine or of a library under it."""
