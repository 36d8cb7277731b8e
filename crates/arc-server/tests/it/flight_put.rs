//! What clients send by Arrow Flight: rows, and statements that change data.

use std::{collections::HashMap, sync::Arc};

use arrow::{
    array::{ArrayRef, Float64Array, Int64Array, NullArray, RecordBatch, StringArray, TimestampNanosecondArray},
    ipc::{CompressionType, writer::IpcWriteOptions},
};
use arrow_flight::{
    Action, FlightData, FlightDescriptor,
    encode::FlightDataEncoderBuilder,
    error::FlightError,
    flight_service_client::FlightServiceClient,
    sql::{
        ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any, Command,
        CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementIngest, DoPutUpdateResult,
        ProstMessageExt, TableDefinitionOptions, TableExistsOption, TableNotExistOption,
    },
};
use axum::body::Body;
use futures::{StreamExt, TryStreamExt, stream};
use http_body_util::BodyExt;
use hyper::Request as HttpRequest;
use prost::Message;
use serde_json::json;
use tonic::{Code, Request, Status};
use tower::ServiceExt;

use crate::{
    flight::{client, fails, fetch, plain, text},
    support::{Server, put_up_with_panics},
};

/// Rows of the times `from..from + rows`, in nanoseconds.
fn rows(from: i64, rows: i64) -> RecordBatch {
    let times: ArrayRef = Arc::new(TimestampNanosecondArray::from_iter_values(from..from + rows));
    let hosts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("h{}", row % 3))));
    let values: ArrayRef = Arc::new(Float64Array::from_iter_values((0..rows).map(|row| row as f64 / 2.0)));
    RecordBatch::try_from_iter([("time", times), ("host", hosts), ("v", values)]).unwrap()
}

fn command(table: &str) -> CommandStatementIngest {
    CommandStatementIngest { table: table.to_owned(), ..CommandStatementIngest::default() }
}

/// Sends a stream to the server; returns how many rows it says that it has stored.
async fn put(
    server: &Server,
    descriptor: FlightDescriptor,
    headers: &[(&'static str, &str)],
    batches: impl IntoIterator<Item = RecordBatch>,
) -> Result<i64, FlightError> {
    let messages = messages(descriptor, batches).await;
    send(server, headers, messages).await.map_err(|status| FlightError::Tonic(Box::new(status)))
}

async fn messages(descriptor: FlightDescriptor, batches: impl IntoIterator<Item = RecordBatch>) -> Vec<FlightData> {
    let encoder = FlightDataEncoderBuilder::new().with_flight_descriptor(Some(descriptor));
    let batches: Vec<_> = batches.into_iter().map(Ok).collect();
    encoder.build(stream::iter(batches)).try_collect().await.unwrap()
}

async fn send(server: &Server, headers: &[(&'static str, &str)], messages: Vec<FlightData>) -> Result<i64, Status> {
    let mut client = FlightServiceClient::new(server.router.clone());
    let mut request = Request::new(stream::iter(messages));
    for (name, value) in headers {
        request.metadata_mut().insert(*name, value.parse().unwrap());
    }
    let mut answers = client.do_put(request).await?.into_inner();
    let answer = answers.next().await.unwrap()?;
    Ok(DoPutUpdateResult::decode(answer.app_metadata).unwrap().record_count)
}

fn descriptor(command: &CommandStatementIngest) -> FlightDescriptor {
    FlightDescriptor::new_cmd(command.as_any().encode_to_vec())
}

#[tokio::test]
async fn rows_are_stored_and_survive_a_restart() {
    let server = Server::new();
    let headers = [("database", "t"), ("x-arc-tags", "host"), ("x-arc-durability", "process")];
    let stored = put(&server, descriptor(&command("cpu")), &headers, [rows(0, 100), rows(100, 50)]).await.unwrap();
    assert_eq!(stored, 150);
    let server = server.reopened();
    let sql = "SELECT count(*), count(DISTINCT host), sum(v), max(CAST(time AS BIGINT)) FROM cpu";
    assert_eq!(server.rows(sql).await, json!([[150, 3, 3087.5, 149]]));
    // The same again merges, because `host` is a tag.
    assert_eq!(put(&server, descriptor(&command("cpu")), &headers, [rows(0, 100)]).await.unwrap(), 100);
    assert_eq!(server.rows("SELECT count(*) FROM cpu").await, json!([[150]]));
}

#[tokio::test]
async fn a_path_takes_rows_too() {
    let server = Server::new();
    let path = FlightDescriptor::new_path(vec!["t".into(), "my cpu".into()]);
    assert_eq!(put(&server, path.clone(), &[], [rows(0, 10)]).await.unwrap(), 10);
    assert_eq!(server.rows("SELECT count(*) FROM \"my cpu\"").await, json!([[10]]));
    let mut client = plain(&server);
    let info = client.get_flight_info(path).await.unwrap();
    let read: Vec<_> =
        client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap().try_collect().await.unwrap();
    assert_eq!(read.iter().map(RecordBatch::num_rows).sum::<usize>(), 10);
}

#[tokio::test]
async fn a_long_stream_is_stored_part_by_part_and_a_retry_under_its_key_stores_nothing() {
    let server = Server::new();
    let headers = [("database", "t"), ("idempotency-key", "load-1"), ("x-arc-durability", "process")];
    let batches: Vec<_> = (0..30).map(|n| rows(n * 20_000, 20_000)).collect();
    for _ in 0..2 {
        assert_eq!(put(&server, descriptor(&command("cpu")), &headers, batches.clone()).await.unwrap(), 600_000);
        assert_eq!(
            server.rows("SELECT count(*), max(CAST(time AS BIGINT)) FROM cpu").await,
            json!([[600_000, 599_999]])
        );
    }
    // Another stream under the same key is none of it.
    let other = put(&server, descriptor(&command("cpu")), &headers, [rows(7, 1)]).await;
    fails(other, Code::FailedPrecondition, "load-1");
    assert_eq!(server.engine.stats().replayed_writes, 2);
}

#[tokio::test]
async fn what_was_stored_before_a_failure_is_said() {
    let server = Server::new();
    let mut batches: Vec<_> = (0..30).map(|n| rows(n * 20_000, 20_000)).collect();
    let bad: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![None]));
    let (host, v) = (batches[0].column(1).slice(0, 1), batches[0].column(2).slice(0, 1));
    batches.push(
        RecordBatch::try_from_iter_with_nullable([("time", bad, true), ("host", host, false), ("v", v, false)])
            .unwrap(),
    );
    let schema = batches[30].schema();
    let nullable =
        batches.iter().map(|batch| RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()).unwrap());
    let headers = [("database", "t"), ("x-arc-durability", "process")];
    let failed = put(&server, descriptor(&command("cpu")), &headers, nullable).await;
    let stored = server.rows("SELECT count(*) FROM cpu").await;
    let count = stored[0][0].as_u64().unwrap();
    assert!(count > 0 && count < 600_000, "{count}");
    fails(failed, Code::InvalidArgument, &format!("; the first {count} rows of the stream are stored"));
}

/// Rows that stay where they lie, of three parts, sent as far as a cable lets them; then the server is gone as well.
#[tokio::test]
async fn of_a_stream_that_is_cut_off_the_whole_parts_are_stored() {
    let encoder = FlightDataEncoderBuilder::new().with_flight_descriptor(Some(descriptor(&command("cpu"))));
    let batches: Vec<_> = (0..20).map(|n| Ok(rows(n * 60_000, 60_000))).collect();
    let encoder = encoder.with_max_flight_data_size(usize::MAX);
    let messages: Vec<FlightData> = encoder.build(stream::iter(batches)).try_collect().await.unwrap();
    let framed = messages.iter().flat_map(|message| {
        let message = message.encode_to_vec();
        [&[0], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()
    });
    let whole: Vec<u8> = framed.collect();
    assert!(whole.len() > 25 << 20, "{}", whole.len());
    for durability in ["memory", "process", "disk"] {
        for (sent, breaks) in [(whole.len(), false), (20 << 20, false), (20 << 20, true), (1 << 20, true)] {
            let mut server = Server::new();
            let pieces = whole[..sent].chunks(100_000).map(|piece| Ok(piece.to_vec())).collect::<Vec<_>>();
            let end = breaks.then(|| Err(std::io::Error::other("the cable")));
            let body = Body::from_stream(stream::iter(pieces.into_iter().chain(end)));
            let request = HttpRequest::post("/arrow.flight.protocol.FlightService/DoPut").header("database", "t");
            let request = request.header("x-arc-durability", durability).body(body).unwrap();
            let (head, body) = server.router.clone().oneshot(request).await.unwrap().into_parts();
            let trailers = body.collect().await.unwrap().trailers().cloned().unwrap_or_default();
            let text = |name: &str| head.headers.get(name).or(trailers.get(name)).map(|value| value.to_str().unwrap());
            let stored = if sent == whole.len() {
                1_200_000
            } else if sent > 16 << 20 {
                2 * 7 * 60_000
            } else {
                0
            };
            assert_eq!(text("grpc-status"), Some(if sent == whole.len() { "0" } else { "3" }));
            let said = text("grpc-message").unwrap_or_default().replace("%20", " ");
            let expected = format!("; the first {stored} rows of the stream are stored");
            assert_eq!(said.contains(&expected), stored > 0 && sent < whole.len(), "{said}");
            for _ in 0..2 {
                if stored > 0 {
                    // Of each batch the halves of 0 to 59,999.
                    let expected = json!([[stored, stored / 60_000 * 59_999 * 15_000_u64]]);
                    assert_eq!(server.rows("SELECT count(*), sum(v) FROM cpu").await, expected, "{durability} {sent}");
                } else {
                    assert!(server.engine.tables("t").is_err(), "{durability} {sent}");
                }
                if durability == "memory" {
                    break;
                }
                server = server.reopened();
            }
        }
    }
}

#[tokio::test]
async fn a_table_is_made_or_not_as_the_client_wants() {
    let server = Server::new();
    let modes = |if_not_exist: TableNotExistOption, if_exists: TableExistsOption| CommandStatementIngest {
        schema: Some("t".to_owned()),
        table_definition_options: Some(TableDefinitionOptions {
            if_not_exist: if_not_exist.into(),
            if_exists: if_exists.into(),
        }),
        ..command("cpu")
    };
    let append = modes(TableNotExistOption::Fail, TableExistsOption::Append);
    let create = modes(TableNotExistOption::Create, TableExistsOption::Fail);
    let either = modes(TableNotExistOption::Create, TableExistsOption::Append);
    let replace = modes(TableNotExistOption::Create, TableExistsOption::Replace);
    let one = |from| [rows(from, 1)];
    fails(put(&server, descriptor(&append), &[], one(0)).await, Code::NotFound, "\"cpu\" does not exist");
    assert_eq!(put(&server, descriptor(&create), &[], one(1)).await.unwrap(), 1);
    fails(put(&server, descriptor(&create), &[], one(2)).await, Code::AlreadyExists, "exists already");
    assert_eq!(put(&server, descriptor(&append), &[], one(3)).await.unwrap(), 1);
    assert_eq!(put(&server, descriptor(&either), &[], one(4)).await.unwrap(), 1);
    fails(put(&server, descriptor(&replace), &[], one(5)).await, Code::Unimplemented, "drop it first");
    assert_eq!(server.rows("SELECT count(*) FROM cpu").await, json!([[3]]));
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_as_a_whole() {
    let server = Server::new();
    server.lines("cpu v=1 1").await;
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let time: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let with = |time_name: &str| RecordBatch::try_from_iter([(time_name, time.clone()), ("v", text.clone())]).unwrap();
    let of = |change: fn(&mut CommandStatementIngest)| {
        let mut command = CommandStatementIngest { schema: Some("t".to_owned()), ..command("cpu") };
        change(&mut command);
        descriptor(&command)
    };
    let option = |name: &str| {
        let options = HashMap::from([(name.to_owned(), "x".to_owned())]);
        descriptor(&CommandStatementIngest { options, ..command("cpu") })
    };
    for (descriptor, batch, code, expected) in [
        (of(|_| {}), with("time"), Code::InvalidArgument, "type conflict"),
        (of(|_| {}), with("when"), Code::InvalidArgument, "no column \"time\""),
        (of(|c| c.temporary = true), with("time"), Code::Unimplemented, "temporary"),
        (of(|c| c.transaction_id = Some("x".into())), with("time"), Code::Unimplemented, "transactions"),
        (of(|c| c.catalog = Some("other".into())), with("time"), Code::InvalidArgument, "no catalog \"other\""),
        (of(|c| c.table.clear()), with("time"), Code::InvalidArgument, "table name"),
        (of(|c| c.schema = Some("a\u{7}b".into())), with("time"), Code::InvalidArgument, "database name"),
        (option("durability"), with("time"), Code::InvalidArgument, "not a durability"),
        (option("colour"), with("time"), Code::InvalidArgument, "\"colour\" is not known"),
        (FlightDescriptor::new_path(vec![]), with("time"), Code::InvalidArgument, "a path is a table"),
        (FlightDescriptor::new_cmd("x"), with("time"), Code::InvalidArgument, "no command"),
    ] {
        fails(put(&server, descriptor, &[], [batch]).await, code, expected);
    }
    let when = RecordBatch::try_from_iter([("when", time.clone()), ("n", time.clone())]).unwrap();
    let headers = [("database", "t"), ("x-arc-time-column", "when"), ("x-arc-precision", "s")];
    assert_eq!(put(&server, descriptor(&command("other")), &headers, [when]).await.unwrap(), 1);
    assert_eq!(server.rows("SELECT CAST(time AS BIGINT), n FROM other").await, json!([[7_000_000_000_i64, 7]]));
    assert_eq!(server.rows("SELECT count(*) FROM cpu").await, json!([[1]]));
}

#[tokio::test]
async fn broken_streams_are_refused() {
    put_up_with_panics();
    let server = Server::with(|config| config.limits.body_bytes = 100_000);
    let headers = [("database", "t")];
    let encode = |batch: RecordBatch, options: IpcWriteOptions| async move {
        let encoder = FlightDataEncoderBuilder::new().with_options(options).with_max_flight_data_size(usize::MAX);
        let encoder = encoder.with_flight_descriptor(Some(descriptor(&command("cpu"))));
        encoder.build(stream::iter([Ok(batch)])).try_collect::<Vec<FlightData>>().await.unwrap()
    };
    let good = encode(rows(0, 100), IpcWriteOptions::default()).await;
    let fails = |result: Result<i64, Status>, code: Code, text: &str| {
        fails(result.map_err(|status| FlightError::Tonic(Box::new(status))), code, text);
    };
    fails(send(&server, &headers, vec![]).await, Code::InvalidArgument, "no messages");
    fails(send(&server, &headers, good[1..].to_vec()).await, Code::InvalidArgument, "no descriptor");
    let mut short = good.clone();
    short[1].data_body = short[1].data_body.slice(..64);
    fails(send(&server, &headers, short).await, Code::InvalidArgument, "not as long as it says");
    let mut lies = good.clone();
    let header = lies[1].data_header.to_vec();
    for at in 0..header.len() {
        let mut changed = header.clone();
        changed[at] ^= 0x7f;
        lies[1].data_header = changed.into();
        if let Err(status) = send(&server, &headers, lies.clone()).await {
            assert_eq!(status.code(), Code::InvalidArgument, "byte {at}: {status:?}");
        }
    }
    let large = encode(rows(0, 100_000), IpcWriteOptions::default()).await;
    fails(send(&server, &headers, large).await, Code::ResourceExhausted, "max_body_bytes");
    for compression in [CompressionType::ZSTD, CompressionType::LZ4_FRAME] {
        let options = IpcWriteOptions::default().try_with_compression(Some(compression)).unwrap();
        let compressed = encode(rows(1_000, 100), options).await;
        assert_eq!(send(&server, &headers, compressed).await.unwrap(), 100);
    }
}

#[tokio::test]
async fn deletes_and_drops_are_allowed_and_counted_as_over_http() {
    let server = Server::with(|config| {
        config.delete.enabled = true;
        config.delete.confirmation_threshold = 5;
        config.delete.max_rows = 50;
    });
    put(&server, descriptor(&command("cpu")), &[("database", "t"), ("x-arc-tags", "host")], [rows(0, 100)])
        .await
        .unwrap();
    let mut client = client(&server, "t");
    let update =
        async |client: &mut crate::flight::Client, sql: &str| client.execute_update(sql.to_owned(), None).await;
    assert_eq!(update(&mut client, "DELETE FROM cpu WHERE time < 3").await.unwrap(), 3);
    assert_eq!(server.rows("SELECT count(*) FROM cpu").await, json!([[97]]));
    let many = "DELETE FROM cpu WHERE host = 'h0'";
    fails(
        update(&mut client, many).await,
        Code::InvalidArgument,
        "33 points meet the condition; send the header x-arc-confirm",
    );
    fails(update(&mut client, "DELETE FROM cpu").await, Code::InvalidArgument, "delete_max_rows");
    fails(update(&mut client, "DELETE FROM nowhere").await, Code::NotFound, "nowhere");
    fails(update(&mut client, "INSERT INTO cpu VALUES (1)").await, Code::InvalidArgument, "INSERT");
    let insert = "INSERT INTO cpu (time, host) VALUES (1000, 'gone'), (1001, 'gone')";
    assert_eq!(update(&mut client, insert).await.unwrap(), 2);
    assert_eq!(update(&mut client, "DELETE FROM cpu WHERE host = 'gone'").await.unwrap(), 2);
    fails(update(&mut client, "SELECT 1").await, Code::InvalidArgument, "SELECT");
    client.set_header("x-arc-confirm", "true");
    let mut prepared = client.prepare(many.to_owned(), None).await.unwrap();
    assert_eq!(prepared.execute_update().await.unwrap(), 33);
    // A client that knows queries only gets the count as a row, and may never ask for it.
    let info = client.execute("DELETE FROM cpu WHERE time = 4".to_owned(), None).await.unwrap();
    assert_eq!(server.rows("SELECT count(*) FROM cpu WHERE CAST(time AS BIGINT) = 4").await, json!([[0]]));
    update(&mut client, "INSERT INTO cpu (time, host) VALUES (4, 'again')").await.unwrap();
    for _ in 0..2 {
        assert_eq!(text(&fetch(&mut client, info.clone()).await.unwrap()), ["1"]);
    }
    let left = server.rows("SELECT host FROM cpu WHERE CAST(time AS BIGINT) = 4").await;
    assert_eq!(left, json!([["again"]]), "a ticket runs nothing again");
    assert_eq!(update(&mut client, "DROP TABLE cpu").await.unwrap(), -1);
    fails(update(&mut client, "DROP TABLE cpu").await, Code::NotFound, "cpu");
    assert_eq!(update(&mut client, "DROP TABLE IF EXISTS cpu").await.unwrap(), -1);

    let off = Server::new();
    off.lines("cpu v=1 1").await;
    let mut client = crate::flight::client(&off, "t");
    for sql in ["DELETE FROM cpu", "DROP TABLE cpu"] {
        fails(client.execute_update(sql.to_owned(), None).await, Code::PermissionDenied, "delete_enabled");
        fails(client.execute(sql.to_owned(), None).await, Code::PermissionDenied, "delete_enabled");
    }
    assert_eq!(off.rows("SELECT count(*) FROM cpu").await, json!([[1]]));
}

#[tokio::test]
async fn inserts_take_rows_of_values_and_of_queries() {
    let server = Server::new();
    put(&server, descriptor(&command("cpu")), &[("database", "t"), ("x-arc-tags", "host")], [rows(0, 3)])
        .await
        .unwrap();
    let mut client = client(&server, "t");
    let copy = "INSERT INTO cpu SELECT time + INTERVAL '1 second', host, v FROM cpu WHERE v > 0";
    assert_eq!(client.execute_update(copy.to_owned(), None).await.unwrap(), 2);
    let mut prepared = client.prepare("INSERT INTO cpu (time, host) VALUES (?, ?)".to_owned(), None).await.unwrap();
    let times: ArrayRef = Arc::new(Int64Array::from(vec![2_000_000, 2_000_001]));
    let hosts: ArrayRef = Arc::new(StringArray::from(vec!["new", "new"]));
    prepared.set_parameters(RecordBatch::try_from_iter([("1", times), ("2", hosts)]).unwrap()).unwrap();
    assert_eq!(prepared.execute_update().await.unwrap(), 2);
    assert_eq!(server.rows("SELECT count(*), count(v) FROM cpu").await, json!([[7, 5]]));
    let bad = "INSERT INTO cpu (time, host) SELECT v, host FROM cpu";
    fails(client.execute_update(bad.to_owned(), None).await, Code::InvalidArgument, "column \"time\"");
    let drop = client.prepare("DROP TABLE IF EXISTS x".to_owned(), None).await;
    let mut drop = drop.unwrap();
    let value: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    drop.set_parameters(RecordBatch::try_from_iter([("1", value)]).unwrap()).unwrap();
    fails(drop.execute_update().await, Code::InvalidArgument, "INSERT alone takes values");
}

#[tokio::test]
async fn a_null_that_comes_with_an_insert_takes_the_place_of_what_was_bound() {
    let server = Server::new();
    let headers = [("database", "t")];
    put(&server, descriptor(&command("cpu")), &headers, [rows(0, 1)]).await.unwrap();
    let query = "INSERT INTO cpu (time, host) VALUES (3000000, ?)".to_owned();
    let create = ActionCreatePreparedStatementRequest { query, transaction_id: None };
    let mut request = Request::new(Action::new("CreatePreparedStatement", create.as_any().encode_to_vec()));
    request.metadata_mut().insert("database", "t".parse().unwrap());
    let mut answers = FlightServiceClient::new(server.router.clone()).do_action(request).await.unwrap().into_inner();
    let created = Any::decode(answers.next().await.unwrap().unwrap().body).unwrap();
    let created: ActionCreatePreparedStatementResult = created.unpack().unwrap().unwrap();
    let prepared_statement_handle = created.prepared_statement_handle;
    let bind = CommandPreparedStatementQuery { prepared_statement_handle: prepared_statement_handle.clone() };
    let insert = CommandPreparedStatementUpdate { prepared_statement_handle };
    let one = |host: ArrayRef| [RecordBatch::try_from_iter_with_nullable([("1", host, true)]).unwrap()];
    let before = one(Arc::new(StringArray::from(vec!["before"])));
    let bind = messages(FlightDescriptor::new_cmd(bind.as_any().encode_to_vec()), before).await;
    let bound = FlightServiceClient::new(server.router.clone()).do_put(Request::new(stream::iter(bind))).await;
    assert_eq!(bound.unwrap().into_inner().count().await, 1);
    // It has no bytes.
    let null = one(Arc::new(NullArray::new(1)));
    let stored = put(&server, FlightDescriptor::new_cmd(insert.as_any().encode_to_vec()), &headers, null).await;
    assert_eq!(stored.unwrap(), 1);
    let sql = "SELECT host FROM cpu ORDER BY time";
    assert_eq!(server.rows(sql).await, json!([["h0"], [null]]));
}

#[tokio::test]
async fn an_insert_of_many_rows_says_how_many_are_stored_when_one_fails() {
    let server = Server::new();
    put(&server, descriptor(&command("cpu")), &[("database", "t")], [rows(0, 1)]).await.unwrap();
    let mut client = client(&server, "t");
    let mut insert = async |sql: &str, times: Vec<Option<i64>>| {
        let mut prepared = client.prepare(sql.to_owned(), None).await.unwrap();
        let times: ArrayRef = Arc::new(Int64Array::from(times));
        prepared.set_parameters(RecordBatch::try_from_iter_with_nullable([("1", times, true)]).unwrap()).unwrap();
        prepared.execute_update().await
    };
    let of_values = "INSERT INTO cpu (time, host) VALUES (?, 'new')";
    let failed = insert(of_values, vec![Some(7), Some(8), None, Some(9)]).await;
    fails(failed, Code::InvalidArgument, "the INSERT stopped; 2 rows are stored: ");
    assert_eq!(server.rows("SELECT count(*) FROM cpu").await, json!([[3]]));
    // Each runs a query that stores a row.
    let of_query = "INSERT INTO cpu (time, host) SELECT CASE WHEN ? < 20 THEN TIMESTAMP '2026-01-01' END, 'new'";
    fails(insert(of_query, vec![Some(19), Some(21)]).await, Code::InvalidArgument, "; 1 rows are stored: ");
    let failed = insert(of_values, vec![None, Some(10)]).await.unwrap_err();
    assert!(!failed.to_string().contains("stored"), "{failed}");
    assert_eq!(server.rows("SELECT count(*) FROM cpu").await, json!([[4]]));
}

#[tokio::test]
async fn commands_that_take_no_stream_say_so() {
    let server = Server::new();
    let command = Command::CommandGetCatalogs(arrow_flight::sql::CommandGetCatalogs {});
    let descriptor = FlightDescriptor::new_cmd(command.into_any().encode_to_vec());
    fails(
        put(&server, descriptor, &[], [rows(0, 1)]).await,
        Code::InvalidArgument,
        "not a command that takes a stream",
    );
    let unknown = Any { type_url: "type.googleapis.com/other.Thing".into(), value: "x".into() };
    let descriptor = FlightDescriptor::new_cmd(unknown.encode_to_vec());
    fails(put(&server, descriptor, &[], [rows(0, 1)]).await, Code::InvalidArgument, "other.Thing");
}
