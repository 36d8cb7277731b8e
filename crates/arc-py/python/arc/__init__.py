"""Arc in-process: a time-series store in one folder.

>>> import arc
>>> with arc.open("./data") as engine:
...     written = engine.write_lp("plant", "pump,id=7 rpm=1450i")
...     frame = engine.sql("plant", "SELECT * FROM pump").df()

``write_lp``, ``sql`` and ``execute`` name the database first, for their second argument can mean anything. ``write`` names the table
first and has ``database="default"``. ``engine.database("plant")`` is a handle that spares the name everywhere.

A write returns once its points survive what ``durability`` says, ``"disk"`` by default, and every statement after it
sees them. Nothing is dropped in silence: what a write refused is in its receipt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arc import interpreters  # Before the native module, which could not be loaded.
from arc._arc import Schema, Table, restore, verify
from arc.database import Database
from arc.engine import Engine, open
from arc.errors import (
    AccessDeniedError,
    BusyError,
    ClosedError,
    CorruptError,
    Error,
    InternalError,
    InvalidInputError,
    IoError,
    NotFoundError,
    OutcomeUnknownError,
    QueryTimeoutError,
    SchemaConflictError,
    StorageFullError,
)
from arc.progress import show_progress
from arc.readable import Result
from arc.receipts import (
    BackupReport,
    Executed,
    Finding,
    FlushReport,
    ImportReport,
    PushReport,
    Rejected,
    RejectedRow,
    VerifyReport,
    Written,
)
from arc.relation import Relation
from arc.types import ColumnTypes

Answer = Relation
"""What a relation was called that could be read once."""

if TYPE_CHECKING:
    from arc import adbc as adbc
    from arc.aio import Async, AsyncWriter
    from arc.remote import Connection, connect
    from arc.served import Served
    from arc.tail import Tail
    from arc.writer import Writer

_LATER = {
    "Async": "arc.aio",
    "AsyncWriter": "arc.aio",
    "Connection": "arc.remote",
    "connect": "arc.remote",
    "Served": "arc.served",
    "Tail": "arc.tail",
    "Writer": "arc.writer",
}


if not TYPE_CHECKING:  # A checker would take any name for one of the module.

    def __getattr__(name: str) -> Any:
        # asyncio and HTTP take ten times as long to import as all else here.
        from importlib import import_module

        if name in _LATER:
            return getattr(import_module(_LATER[name]), name)
        if name == "adbc":  # It needs another package.
            return import_module("arc.adbc")
        raise AttributeError(f"module 'arc' has no attribute {name!r}")


__all__ = [
    "AccessDeniedError",
    "Answer",
    "Async",
    "AsyncWriter",
    "BackupReport",
    "BusyError",
    "ClosedError",
    "ColumnTypes",
    "Connection",
    "CorruptError",
    "Database",
    "Engine",
    "Error",
    "Executed",
    "Finding",
    "FlushReport",
    "ImportReport",
    "InternalError",
    "InvalidInputError",
    "IoError",
    "NotFoundError",
    "OutcomeUnknownError",
    "PushReport",
    "QueryTimeoutError",
    "Rejected",
    "RejectedRow",
    "Relation",
    "Result",
    "Schema",
    "SchemaConflictError",
    "Served",
    "StorageFullError",
    "Table",
    "Tail",
    "VerifyReport",
    "Writer",
    "Written",
    "connect",
    "open",
    "restore",
    "show_progress",
    "verify",
]
