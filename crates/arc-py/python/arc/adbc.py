"""Arc through ADBC: connections as Python's DB-API has them, for ``pandas.read_sql``, ``to_sql`` and whatever else takes one.

>>> import arc.adbc
>>> with arc.adbc.connect("./data", database="plant") as connection, connection.cursor() as cursor:
...     _ = cursor.execute("SELECT 1 AS one")
...     cursor.fetchall()
[(1,)]

Needs ``adbc-driver-manager`` and, for rows, ``pyarrow``. Other languages load the shared library of ``crates/arc-adbc`` (docs/adbc.md).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from arc import _arc
from arc.errors import InvalidInputError

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection

ENTRYPOINT = "AdbcDriverArcInit"
"""The function with which the driver begins."""


def driver() -> str:
    """Returns the path of the driver in this package, for a driver manager in this process."""
    return str(_arc.__file__)


def connect(
    path: str | os.PathLike[str], *, database: str = "default", mode: str = "rw", durability: str | None = None
) -> Connection:
    """Opens the data directory at ``path`` as a connection of the DB-API; creates it if there is none.

    Connections of one process share the engine of a folder. Each statement is a transaction: ``commit`` does nothing.

    database: the database of statements that name none.
    mode: ``"rw"`` reads and writes; ``"r"`` only reads, beside the process that writes.
    durability: what written rows survive: ``"disk"``, ``"process"`` or ``"memory"``; ``None`` is ``"disk"``.
    """
    try:
        from adbc_driver_manager import dbapi
    except ImportError as error:
        raise InvalidInputError("arc.adbc needs a driver manager: pip install adbc-driver-manager pyarrow") from error
    options = {"uri": os.path.expanduser(os.fspath(path)), "arc.database": database, "arc.mode": mode}
    if durability is not None:
        options["arc.durability"] = durability
    return dbapi.connect(driver=driver(), entrypoint=ENTRYPOINT, db_kwargs=options, autocommit=True)
