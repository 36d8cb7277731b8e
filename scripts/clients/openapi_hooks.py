"""What schemathesis is told about this server: bodies that it cannot make up, how answers are read, checks of our own.

Loaded by the processes that test_openapi.py starts; OPENAPI_FOLDER names the folder of the server's files.
"""

from __future__ import annotations

import csv
import io
import json
import os
from typing import Any

import msgpack
import pyarrow
import pyarrow.parquet
import schemathesis
from hypothesis import strategies

# The token of the run; one that is changed or gone would end it.
OWN_ID, OWN_NAME = "1", "admin"


def closed(schema: Any) -> None:
    """Has a schema allow no key that it does not name."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for part in schema.values():
            closed(part)
    elif isinstance(schema, list):
        for part in schema:
            closed(part)


def of_answers(document: dict[str, Any]) -> list[Any]:
    """Returns what describes answers, with all that it refers to."""
    found: dict[str, Any] = {}

    def follow(part: Any) -> None:
        if isinstance(part, dict):
            name = part.get("$ref")
            if isinstance(name, str) and name not in found:
                target: Any = document
                for key in name.removeprefix("#/").split("/"):
                    target = target[key]
                found[name] = target
                follow(target)
            for inner in part.values():
                follow(inner)
        elif isinstance(part, list):
            for inner in part:
                follow(inner)

    items = [*document["paths"].values(), *document["components"]["pathItems"].values()]
    answers = [operation["responses"] for item in items for operation in item.values() if "responses" in operation]
    follow(answers)
    return [*answers, *found.values()]


@schemathesis.hook
def before_load_schema(context: Any, raw_schema: dict[str, Any]) -> None:
    """Answers have no key that the document lacks. Clients may meet new ones, so the document itself does not say so."""
    for part in of_answers(raw_schema):
        closed(part)


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Keeps the token of the run."""
    changes_token = "/auth/tokens/{id}" in case.operation.path and case.method != "GET"
    if changes_token and str(case.path_parameters.get("id")).strip().lstrip("+0") == OWN_ID:
        case.path_parameters["id"] = 2
    if case.query and OWN_NAME in str(case.query.get("token_name")):
        case.query["token_name"] = "another"
    # That of a table that is there has no end.
    if case.path == "/api/v1/tail" and case.query and "table" in case.query:
        case.query["table"] = "nothing"


@schemathesis.check
def names_no_file_of_the_host(context: Any, response: Any, case: Any) -> None:
    told = response.content.decode(errors="replace") + str(response.headers)
    for secret in [os.environ["OPENAPI_FOLDER"], "/.cargo/", ".rs:", "panicked"]:
        assert secret not in told, f"{secret} is in the answer"


@schemathesis.check
def lets_the_owner_of_a_token_in(context: Any, response: Any, case: Any) -> None:
    assert response.status_code != 401, "the token of the run does not let in any more"


def stream() -> bytes:
    table = pyarrow.table({"time": pyarrow.array([1, 2], pyarrow.timestamp("ns")), "id": ["a", "b"], "rpm": [1, 2]})
    out = io.BytesIO()
    with pyarrow.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


ARROW = stream()
schemathesis.openapi.media_type(
    "application/vnd.apache.arrow.stream",
    strategies.sampled_from([ARROW, ARROW[:-9], ARROW[8:], b""]),
    aliases=["application/vnd.apache.arrow.file"],
)
ROWS = msgpack.packb([{"m": "pump", "t": 1_700_000_000, "tags": {"id": "7"}, "fields": {"rpm": 1450}}])
COLUMNS = msgpack.packb({"m": "pump", "columns": {"time": [1, 2], "id": ["a", "b"], "rpm": [1, 2]}})
PACKED = strategies.sampled_from([ROWS, COLUMNS, ROWS[:-1]])
schemathesis.openapi.media_type("application/msgpack", strategies.one_of(PACKED, strategies.binary(max_size=64)))


@schemathesis.deserializer("application/msgpack")
def read_msgpack(context: Any, response: Any) -> Any:
    return msgpack.unpackb(response.content, timestamp=1)


@schemathesis.deserializer("application/vnd.apache.arrow.stream")
def read_arrow(context: Any, response: Any) -> Any:
    return pyarrow.ipc.open_stream(response.content).read_all().num_rows


@schemathesis.deserializer("application/vnd.apache.parquet")
def read_parquet(context: Any, response: Any) -> Any:
    return pyarrow.parquet.read_table(io.BytesIO(response.content)).num_rows


@schemathesis.deserializer("application/x-ndjson", "application/jsonl")
def read_lines(context: Any, response: Any) -> Any:
    return [json.loads(line) for line in response.content.splitlines()]


@schemathesis.deserializer("text/csv")
def read_csv(context: Any, response: Any) -> Any:
    return list(csv.reader(io.StringIO(response.content.decode())))
