//! Queries by Arrow Flight: statements, tickets, errors, limits.

use std::sync::Arc;

use arc_server::Config;
use arrow::{
    array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray},
    compute::concat_batches,
    datatypes::{DataType, Int64Type},
    util::pretty::pretty_format_batches,
};
use arrow_flight::{
    FlightClient, FlightDescriptor, FlightInfo, Ticket, error::FlightError, flight_service_client::FlightServiceClient,
    sql::client::FlightSqlServiceClient,
};
use axum::Router;
use futures::{StreamExt, TryStreamExt};
use tonic::{Code, Status};

use crate::support::Server;

const SCENE: &str = "cpu,host=a usage=1.5,n=1i 1\ncpu,host=b usage=2.5,n=2i 2\ncpu,host=a usage=3.5,n=3i 3";

/// A client that needs no socket.
pub(crate) type Client = FlightSqlServiceClient<Router>;

pub(crate) fn client(server: &Server, database: &str) -> Client {
    let service = FlightServiceClient::new(server.router.clone()).max_decoding_message_size(4 << 20);
    let mut client = FlightSqlServiceClient::new_from_inner(service);
    client.set_header("database", database);
    client
}

/// A client of plain Flight, without headers.
pub(crate) fn plain(server: &Server) -> FlightClient<Router> {
    FlightClient::new_from_inner(FlightServiceClient::new(server.router.clone()))
}

pub(crate) fn status_of(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => panic!("{other:?}"),
    }
}

/// Asserts that a call failed with this code and says this.
#[track_caller]
pub(crate) fn fails<T: std::fmt::Debug>(result: Result<T, FlightError>, code: Code, text: &str) {
    let status = status_of(result.unwrap_err());
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status.message().contains(text), "{text:?} is not in {:?}", status.message());
}

pub(crate) async fn fetch(client: &mut Client, info: FlightInfo) -> Result<Vec<RecordBatch>, FlightError> {
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    client.do_get(ticket).await?.try_collect().await
}

/// Runs a statement, and checks that its columns were announced as they are.
async fn query(client: &mut Client, sql: &str) -> Result<Vec<RecordBatch>, FlightError> {
    let info = client.execute(sql.to_owned(), None).await?;
    let announced = info.clone().try_decode_schema().unwrap();
    let stream = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await?;
    let batches: Vec<RecordBatch> = stream.try_collect().await?;
    assert!(batches.iter().all(|batch| *batch.schema() == announced), "{announced}");
    Ok(batches)
}

pub(crate) fn text(batches: &[RecordBatch]) -> Vec<String> {
    let table = pretty_format_batches(batches).unwrap().to_string();
    let trim = |line: &str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join("|");
    table.lines().filter(|line| line.starts_with('|')).skip(1).map(trim).collect()
}

#[tokio::test]
async fn statements_are_answered_with_the_columns_that_were_announced() {
    let server = Server::new();
    server.lines(SCENE).await;
    let mut client = client(&server, "t");
    for (sql, expected) in [
        ("SELECT host, n FROM cpu ORDER BY n", &["a|1", "b|2", "a|3"][..]),
        ("SELECT host, sum(n) FROM cpu GROUP BY host ORDER BY host", &["a|4", "b|2"]),
        ("SELECT max(usage) FROM cpu WHERE host = 'b'", &["2.5"]),
        ("SELECT n FROM cpu WHERE n > 7", &[]),
        ("SHOW DATABASES", &["t"]),
        ("SELECT n FROM t.cpu LIMIT 0", &[]),
        ("SELECT * FROM cpu ORDER BY time LIMIT 1", &["1970-01-01T00:00:00.000000001Z|a|1.5|1"]),
        ("SELECT 1 AS one, 'x' AS x, NULL AS nothing", &["1|x|"]),
    ] {
        assert_eq!(text(&query(&mut client, sql).await.unwrap()), expected, "{sql}");
    }
}

#[tokio::test]
async fn a_mistake_is_named_with_a_code_that_fits() {
    let server = Server::new();
    server.lines(SCENE).await;
    let mut client = client(&server, "t");
    for (sql, code, expected) in [
        ("SELECT nope FROM cpu", Code::InvalidArgument, "nope"),
        ("SELECT", Code::InvalidArgument, ""),
        ("", Code::InvalidArgument, "empty"),
        ("SELECT 1; SELECT 2", Code::InvalidArgument, "more than one"),
        ("SELECT * FROM nowhere", Code::NotFound, "\"nowhere\" does not exist in database \"t\""),
        ("INSERT INTO cpu VALUES (1)", Code::InvalidArgument, "INSERT"),
        ("COPY cpu TO '/tmp/x'", Code::InvalidArgument, "COPY"),
        ("SELECT n FROM cpu WHERE n = $1", Code::InvalidArgument, "0 values"),
        ("SELECT 1 / 0", Code::InvalidArgument, "zero"),
    ] {
        fails(query(&mut client, sql).await, code, expected);
    }
    // What is wrong with a row comes with the rows.
    let info = client.execute("SELECT n / (n - 3) FROM cpu ORDER BY n".to_owned(), None).await.unwrap();
    fails(fetch(&mut client, info).await, Code::InvalidArgument, "zero");
}

#[tokio::test]
async fn prepared_statements_take_values() {
    let server = Server::new();
    server.lines(SCENE).await;
    let mut client = client(&server, "t");
    let row = |host: &str, n: i64| {
        let (host, n): (ArrayRef, ArrayRef) =
            (Arc::new(StringArray::from(vec![host])), Arc::new(Int64Array::from(vec![n])));
        RecordBatch::try_from_iter([("a", host), ("b", n)]).unwrap()
    };
    let sql = "SELECT usage FROM cpu WHERE host = ? AND n > ?".to_owned();
    let mut statement = client.prepare(sql, None).await.unwrap();
    let types: Vec<_> = statement.parameter_schema().unwrap().fields().iter().map(|f| f.data_type().clone()).collect();
    // As the value of a tag is sent, not as it is kept.
    assert_eq!(types, [DataType::Utf8, DataType::Int64]);
    assert_eq!(statement.dataset_schema().unwrap().field(0).data_type(), &DataType::Float64);
    let without_values = statement.execute().await.unwrap();
    fails(fetch(&mut client, without_values).await, Code::InvalidArgument, "0 values");
    for (host, n, expected) in [("a", 1, &["3.5"][..]), ("a", 0, &["1.5", "3.5"]), ("b", 2, &[])] {
        statement.set_parameters(row(host, n)).unwrap();
        let info = statement.execute().await.unwrap();
        assert_eq!(text(&fetch(&mut client, info).await.unwrap()), expected, "{host} {n}");
    }
    let two = concat_batches(&row("a", 1).schema(), &[row("a", 1), row("b", 1)]).unwrap();
    statement.set_parameters(two).unwrap();
    fails(statement.execute().await, Code::InvalidArgument, "one row");
    let mut closed = statement.clone();
    statement.close().await.unwrap();
    closed.set_parameters(row("a", 1)).unwrap();
    fails(closed.execute().await, Code::NotFound, "prepared statement is not known");
}

#[tokio::test]
async fn a_ticket_outlives_its_statement() {
    let server = Server::new();
    server.lines(SCENE).await;
    let mut client = client(&server, "t");
    let mut statement = client.prepare("SELECT n FROM cpu WHERE n = $1".to_owned(), None).await.unwrap();
    let bound = |n: i64| RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![n])) as ArrayRef)]).unwrap();
    statement.set_parameters(bound(2)).unwrap();
    let two = statement.execute().await.unwrap();
    statement.set_parameters(bound(3)).unwrap();
    let three = statement.execute().await.unwrap();
    statement.close().await.unwrap();
    assert_eq!(text(&fetch(&mut client, two).await.unwrap()), ["2"]);
    assert_eq!(text(&fetch(&mut client, three).await.unwrap()), ["3"]);
}

#[tokio::test]
async fn tickets_of_influxdb_need_nothing_before_them() {
    let server = Server::new();
    server.lines(SCENE).await;
    let mut client = plain(&server);
    let mut ask = async |ticket: &str| -> Result<Vec<String>, FlightError> {
        let batches: Vec<_> = client.do_get(Ticket::new(ticket.to_owned())).await?.try_collect().await?;
        Ok(text(&batches))
    };
    for (ticket, expected) in [
        (r#"{"database":"t","sql_query":"SELECT max(n) FROM cpu","query_type":"sql"}"#, "3"),
        (r#"{"namespace_name":"t","sql_query":"SELECT max(n) FROM cpu"}"#, "3"),
        (r#"{"database":"t","sql_query":"SELECT max(n) FROM cpu WHERE host = $h","params":{"h":"b"}}"#, "2"),
    ] {
        assert_eq!(ask(ticket).await.unwrap(), [expected], "{ticket}");
    }
    for (ticket, code, expected) in [
        (r#"{"sql_query":"SELECT max(n) FROM cpu"}"#, Code::NotFound, "in database \"default\""),
        (r#"{"database":"t","sql_query":"SELECT 1","query_type":"influxql"}"#, Code::InvalidArgument, "influxql"),
        (r#"{"database":"t"}"#, Code::InvalidArgument, "sql_query"),
        ("{", Code::InvalidArgument, "JSON"),
        ("garbage", Code::InvalidArgument, "no command of Flight SQL"),
        ("", Code::InvalidArgument, ""),
    ] {
        fails(ask(ticket).await, code, expected);
    }
}

#[tokio::test]
async fn a_path_is_a_table() {
    let server = Server::new();
    server.lines("my\\ cpu n=7i 1").await;
    let mut client = plain(&server);
    client.add_header("x-arc-database", "nowhere").unwrap();
    let path = |parts: &[&str]| FlightDescriptor::new_path(parts.iter().map(|part| (*part).to_owned()).collect());
    let info = client.get_flight_info(path(&["t", "my cpu"])).await.unwrap();
    let rows: Vec<_> =
        client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap().try_collect().await.unwrap();
    assert_eq!(text(&rows), ["1970-01-01T00:00:00.000000001Z|7"]);
    let schema = client.get_schema(path(&["t", "my cpu"])).await.unwrap();
    assert_eq!(schema.field(1).name(), "n");
    fails(client.get_flight_info(path(&["my cpu"])).await, Code::NotFound, "\"nowhere\"");
    fails(client.get_flight_info(path(&[])).await, Code::InvalidArgument, "a path is a table");
    fails(client.get_flight_info(path(&["a", "b", "c"])).await, Code::InvalidArgument, "a path is a table");
    let unknown = FlightDescriptor { r#type: 7, ..FlightDescriptor::default() };
    fails(client.get_flight_info(unknown).await, Code::InvalidArgument, "descriptor");
}

#[tokio::test]
async fn tags_are_plain_text_unless_dictionaries_are_asked_for() {
    let server = Server::new();
    server.lines(SCENE).await;
    for (header, dictionary) in [(None, false), (Some("false"), false), (Some("true"), true)] {
        let mut client = client(&server, "t");
        if let Some(value) = header {
            client.set_header("x-arc-arrow-dictionary", value);
        }
        let batches = query(&mut client, "SELECT host FROM cpu ORDER BY time").await.unwrap();
        let host = batches[0].column(0);
        assert_eq!(matches!(host.data_type(), DataType::Dictionary(..)), dictionary, "{header:?}");
        assert_eq!(text(&batches), ["a", "b", "a"]);
    }
    let mut client = client(&server, "t");
    client.set_header("x-arc-arrow-dictionary", "perhaps");
    fails(query(&mut client, "SELECT 1").await, Code::InvalidArgument, "x-arc-arrow-dictionary");
}

#[tokio::test]
async fn a_long_answer_is_whole_and_comes_in_messages_of_a_good_size() {
    let server = Server::new();
    const ROWS: i64 = 300_000;
    let lines: Vec<String> = (0..ROWS).map(|n| format!("m,host=h{} v={n}i {n}\n", n % 7)).collect();
    server.lines(lines.concat()).await;
    let batches = query(&mut client(&server, "t"), "SELECT v, host FROM m ORDER BY v").await.unwrap();
    assert!(batches.len() < 12, "{}", batches.len());
    let values = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
    assert!(values.eq(0..ROWS));
    let last = batches.last().unwrap();
    assert_eq!(last.column(1).as_string::<i32>().value(last.num_rows() - 1), format!("h{}", (ROWS - 1) % 7));
}

#[tokio::test]
async fn who_leaves_ends_the_query_and_who_does_not_read_ends_at_its_time_limit() {
    let server = Server::with(|config: &mut Config| {
        // A busy machine begins an answer within it, and the next statement waits longer for its place.
        config.engine.query_timeout = std::time::Duration::from_secs(6);
        config.limits.queries = 1;
    });
    let lines: Vec<String> = (0..200_000).map(|n| format!("m v={n}i {n}\n")).collect();
    server.lines(lines.concat()).await;
    let mut client = client(&server, "t");
    let forever = "SELECT a.v + b.v AS v FROM m a, m b".to_owned();
    let info = client.execute(forever, None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    // There is one place, so that each of these needs the one before to have ended.
    for _ in 0..3 {
        let mut left = client.do_get(ticket.clone()).await.unwrap();
        assert!(left.next().await.unwrap().is_ok());
    }
    let mut unread = client.do_get(ticket).await.unwrap();
    assert_eq!(text(&query(&mut client, "SELECT 1").await.unwrap()), ["1"]);
    let error = loop {
        if let Err(error) = unread.next().await.expect("it did not end well") {
            break error;
        }
    };
    assert_eq!(status_of(error).code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn what_is_not_supported_says_so() {
    let server = Server::new();
    let mut client = plain(&server);
    fails(client.list_flights("").await.map(drop), Code::Unimplemented, "Flight SQL");
    fails(client.poll_flight_info(FlightDescriptor::new_cmd("")).await, Code::Unimplemented, "not polled");
    fails(client.do_exchange(futures::stream::empty()).await.map(drop), Code::Unimplemented, "DoExchange");
    let unknown = server.post("/arrow.flight.protocol.FlightService/Invented", "").await;
    assert_eq!(unknown.headers["grpc-status"], "12");
    assert!(unknown.headers["grpc-message"].to_str().unwrap().contains("Invented"));
    let action = arrow_flight::Action::new("SetSessionOptions", "");
    fails(client.do_action(action).await.map(drop), Code::Unimplemented, "SetSessionOptions");
    let actions: Vec<_> = client.list_actions().await.unwrap().try_collect().await.unwrap();
    assert_eq!(actions.len(), 2);
    let mut sql = self::client(&server, "t");
    let began = sql.begin_transaction().await;
    assert!(began.unwrap_err().to_string().contains("no transactions"));
    let part = sql.execute("SELECT 1".to_owned(), Some("x".into())).await;
    fails(part, Code::Unimplemented, "no transactions");
}

#[tokio::test]
async fn a_client_that_has_a_password_is_let_in() {
    let server = Server::new();
    let mut client = client(&server, "t");
    client.handshake("somebody", "secret").await.unwrap();
    assert_eq!(client.token().map(String::as_str), Some("anyone"));
    assert_eq!(text(&query(&mut client, "SELECT 1").await.unwrap()), ["1"]);
}
