from os import PathLike
from types import TracebackType
from typing import List, Optional, Sequence, Type, Union, final

from arc.database import Database
from arc.receipts import FlushReport, Written
from arc.types import ArrowTable, Durability, Precision, Seconds

__all__ = ["Answer", "Engine", "Schema", "open"]

def open(
    path: Union[str, PathLike[str]],
    *,
    durability: Durability = "disk",
    flush_after: Optional[Seconds] = None,
    flush_bytes: Optional[int] = None,
    flush_wal_bytes: Optional[int] = None,
    max_buffer_bytes: Optional[int] = None,
    write_timeout: Optional[Seconds] = None,
    wal_segment_bytes: Optional[int] = None,
    query_memory_bytes: Optional[int] = None,
    query_timeout: Optional[Seconds] = None,
) -> Engine: ...
@final
class Engine:
    @property
    def path(self) -> str: ...
    def write_lp(
        self,
        database: str,
        data: Union[str, bytes, bytearray],
        *,
        precision: Precision = "ns",
        durability: Optional[Durability] = None,
    ) -> Written: ...
    def write(
        self,
        table: str,
        data: ArrowTable,
        *,
        tags: Optional[Sequence[str]] = None,
        time: str = "time",
        precision: Precision = "ns",
        durability: Optional[Durability] = None,
        database: str = "default",
    ) -> Written: ...
    def sql(self, database: str, query: str) -> Answer: ...
    def database(self, name: str) -> Database: ...
    def flush(self) -> FlushReport: ...
    def close(self) -> None: ...
    def databases(self) -> List[str]: ...
    def tables(self, database: str) -> List[str]: ...
    def data_files(self, database: str, table: str) -> List[str]: ...
    def __enter__(self) -> Engine: ...
    def __exit__(
        self,
        exc_type: Optional[Type[BaseException]],
        exc_value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...

@final
class Answer:
    @property
    def schema(self) -> Schema: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...

@final
class Schema:
    @property
    def names(self) -> List[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
