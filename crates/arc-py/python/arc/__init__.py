"""Arc in-process: a time-series store in one folder.

>>> import arc, pyarrow
>>> with arc.open("./data") as engine:
...     engine.write_lp("plant", "pump,id=7 rpm=1450i").raise_for_rejected()
...     table = pyarrow.table(engine.sql("plant", "SELECT * FROM pump"))

``write_lp`` and ``sql`` name the database first, for their second argument can mean anything. ``write`` names the table
first and has ``database="default"``. ``engine.database("plant")`` is a handle that spares the name everywhere.

A write returns once its points survive what ``durability`` says, ``"disk"`` by default, and every statement after it
sees them. Nothing is dropped in silence: what a write refused is in its receipt.
"""

from arc._arc import Answer, Engine, Schema, open, restore, verify
from arc.database import Database
from arc.errors import (
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
from arc.receipts import BackupReport, Finding, FlushReport, Rejected, VerifyReport, Written

__all__ = [
    "Answer",
    "BackupReport",
    "BusyError",
    "ClosedError",
    "CorruptError",
    "Database",
    "Engine",
    "Error",
    "Finding",
    "FlushReport",
    "InternalError",
    "InvalidInputError",
    "IoError",
    "NotFoundError",
    "OutcomeUnknownError",
    "QueryTimeoutError",
    "Rejected",
    "Schema",
    "SchemaConflictError",
    "StorageFullError",
    "VerifyReport",
    "Written",
    "open",
    "restore",
    "verify",
]
