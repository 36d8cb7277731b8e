from collections.abc import Sequence
from os import PathLike
from types import TracebackType
from typing import final

from arc.database import Database
from arc.receipts import BackupReport, FlushReport, VerifyReport, Written
from arc.types import ArrowTable, Durability, Precision, Seconds

__all__ = ["Answer", "Engine", "Schema", "open", "restore", "verify"]

def open(
    path: str | PathLike[str],
    *,
    durability: Durability = "disk",
    flush_after: Seconds | None = None,
    memory_bytes: int | None = None,
    flush_bytes: int | None = None,
    flush_wal_bytes: int | None = None,
    max_buffer_bytes: int | None = None,
    write_timeout: Seconds | None = None,
    wal_segment_bytes: int | None = None,
    query_memory_bytes: int | None = None,
    query_timeout: Seconds | None = None,
) -> Engine: ...
def verify(path: str | PathLike[str]) -> VerifyReport: ...
def restore(source: str | PathLike[str], target: str | PathLike[str]) -> None: ...

@final
class Engine:
    @property
    def path(self) -> str: ...
    def write_lp(
        self,
        database: str,
        data: str | bytes | bytearray,
        *,
        precision: Precision = "ns",
        durability: Durability | None = None,
        idempotency_key: str | None = None,
    ) -> Written: ...
    def write(
        self,
        table: str,
        data: ArrowTable,
        *,
        tags: Sequence[str] | None = None,
        time: str = "time",
        precision: Precision = "ns",
        durability: Durability | None = None,
        database: str = "default",
        idempotency_key: str | None = None,
    ) -> Written: ...
    def sql(self, database: str, query: str) -> Answer: ...
    def delete(self, database: str, table: str, where: str) -> None: ...
    def database(self, name: str) -> Database: ...
    def flush(self) -> FlushReport: ...
    def backup(self, target: str | PathLike[str]) -> BackupReport: ...
    def verify(self) -> VerifyReport: ...
    def close(self) -> None: ...
    def databases(self) -> list[str]: ...
    def tables(self, database: str) -> list[str]: ...
    def data_files(self, database: str, table: str) -> list[str]: ...
    def __enter__(self) -> Engine: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

@final
class Answer:
    @property
    def schema(self) -> Schema: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Schema:
    @property
    def names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
