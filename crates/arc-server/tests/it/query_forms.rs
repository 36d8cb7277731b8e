//! One statement, every form: the same rows, the same refusals, and nothing that breaks off looks whole.

use std::io::Read;

use arc_server::{Config, Server as Listening};
use arrow::{
    array::{AsArray, RecordBatch},
    compute::concat_batches,
    datatypes::{DataType, Float64Type, Int64Type},
    ipc::reader::StreamReader,
};
use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Method, Request};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tower::ServiceExt;

use crate::support::{Reply, Server};

const SCENE: &str = "cpu,host=a usage=1.5,n=1i 1700000000000000001\ncpu,host=b usage=2.5 1700000001500000000";
const FORMATS: [&str; 7] = ["json", "ndjson", "csv", "pretty", "msgpack", "arrow", "parquet"];
const QUERY: &str = "SELECT host, usage, n FROM cpu ORDER BY host";

async fn ask(server: &Server, format: &str, sql: &str) -> Reply {
    server.post(&format!("/api/v1/query?db=t&format={format}"), json!({ "sql": sql }).to_string()).await
}

fn text(reply: &Reply) -> &str {
    assert_eq!(reply.status, 200, "{reply:?}");
    std::str::from_utf8(&reply.body).unwrap()
}

fn of_parquet(body: &Bytes) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(body.clone()).unwrap();
    let schema = reader.schema().clone();
    let batches: Vec<_> = reader.build().unwrap().collect::<Result<_, _>>().unwrap();
    concat_batches(&schema, &batches).unwrap()
}

fn check_rows(batch: &RecordBatch) {
    assert_eq!(batch.column(0).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a"), Some("b")]);
    assert_eq!(batch.column(1).as_primitive::<Float64Type>().values(), &[1.5, 2.5]);
    assert_eq!(batch.column(2).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(1), None]);
}

#[tokio::test]
async fn every_form_has_the_same_rows() {
    let server = Server::new();
    server.lines(SCENE).await;
    let json = ask(&server, "json", QUERY).await;
    assert_eq!(json.json()["data"], json!([["a", 1.5, 1], ["b", 2.5, null]]));
    let lines = ask(&server, "ndjson", QUERY).await;
    assert_eq!(text(&lines), "{\"host\":\"a\",\"usage\":1.5,\"n\":1}\n{\"host\":\"b\",\"usage\":2.5,\"n\":null}\n");
    assert_eq!(lines.header("content-type"), "application/x-ndjson");
    let csv = ask(&server, "csv", QUERY).await;
    assert_eq!(text(&csv), "host,usage,n\na,1.5,1\nb,2.5,\n");
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    let drawn = ask(&server, "pretty", QUERY).await;
    assert!(text(&drawn).contains("| b    | 2.5   |   |"), "{}", text(&drawn));
    let packed = ask(&server, "msgpack", QUERY).await;
    let answer: Value = rmp_serde::from_slice(&packed.body).unwrap();
    assert_eq!(answer["data"], json!([["a", "b"], [1.5, 2.5], [1, null]]));
    assert_eq!(answer["types"], json!(["utf8", "float64", "int64"]));
    assert_eq!(packed.header("content-type"), "application/msgpack");
    let batches = ask(&server, "arrow", QUERY).await.batches();
    check_rows(&concat_batches(&batches[0].schema(), &batches).unwrap());
    let parquet = ask(&server, "parquet", QUERY).await;
    assert_eq!(parquet.header("content-type"), "application/vnd.apache.parquet");
    check_rows(&of_parquet(&parquet.body));
}

#[tokio::test]
async fn accept_and_the_path_choose_the_form_as_well() {
    let server = Server::new();
    let body = json!({ "sql": "SELECT 1 AS one" }).to_string();
    for (path, accept, expected) in [
        ("/api/v1/query", "*/*", "application/json"),
        ("/api/v1/query", "text/csv", "text/csv; charset=utf-8"),
        ("/api/v1/query", "text/html, application/vnd.apache.parquet;q=0.9", "application/vnd.apache.parquet"),
        ("/api/v1/query?format=ndjson", "text/csv", "application/x-ndjson"),
        ("/api/v1/query/arrow", "application/json", "application/vnd.apache.arrow.stream"),
        ("/api/v1/query/msgpack", "application/json", "application/msgpack"),
    ] {
        let reply = server.send(Method::POST, path, &[("accept", accept)], body.clone()).await;
        assert_eq!((reply.status.as_u16(), reply.header("content-type")), (200, expected), "{path} {accept}");
        assert_eq!(reply.header("x-arc-query-id").len(), 26);
    }
    ask(&server, "xml", "SELECT 1").await.is(400, "\"xml\" is not a format");
}

#[tokio::test]
async fn times_keep_their_nanoseconds_in_every_form() {
    let server = Server::new();
    server.lines(SCENE).await;
    let sql = "SELECT time FROM cpu ORDER BY time LIMIT 1";
    let expected = "2023-11-14T22:13:20.000000001Z";
    assert_eq!(text(&ask(&server, "csv", sql).await), format!("time\n{expected}\n"));
    assert_eq!(text(&ask(&server, "ndjson", sql).await), format!("{{\"time\":\"{expected}\"}}\n"));
    for batch in
        [ask(&server, "arrow", sql).await.batches().remove(0), of_parquet(&ask(&server, "parquet", sql).await.body)]
    {
        let time = arrow::compute::cast(batch.column(0), &DataType::Int64).unwrap();
        assert_eq!(time.as_primitive::<Int64Type>().values(), &[1_700_000_000_000_000_001]);
    }
    let packed = ask(&server, "msgpack", sql).await.body;
    let time = [&[0x91, 0xd7, 0xff][..], &(1_u64 << 34 | 1_700_000_000).to_be_bytes()].concat();
    assert!(packed.windows(time.len()).any(|bytes| bytes == time), "{packed:x?}");
}

#[tokio::test]
async fn values_of_many_levels_have_every_form() {
    let server = Server::new();
    for (levels, expected) in [(64, 200), (180, 400)] {
        let sql = format!("SELECT {}1{} AS x", "make_array(".repeat(levels), ")".repeat(levels));
        for format in FORMATS {
            let reply = ask(&server, format, &sql).await;
            assert_eq!(reply.status, expected, "{format}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn show_and_statements_without_a_table_work_in_every_form() {
    let server = Server::new();
    server.lines(SCENE).await;
    for format in FORMATS {
        for sql in
            ["SELECT 1 AS one", "SHOW DATABASES", "SHOW TABLES", "EXPLAIN SELECT 1", "SELECT * FROM cpu WHERE n > 9"]
        {
            let reply = ask(&server, format, sql).await;
            assert_eq!(reply.status, 200, "{format} {sql}: {reply:?}");
            assert!(!reply.body.is_empty() || format == "ndjson");
        }
    }
}

#[tokio::test]
async fn what_fails_early_fails_alike_in_every_form() {
    let server = Server::new();
    server.lines(SCENE).await;
    for format in FORMATS {
        for (sql, status, reason) in [
            ("SELECT * FROM nothing", 404, "\"nothing\" does not exist"),
            ("SELEC 1", 400, "SELEC"),
            ("DELETE FROM cpu", 400, "DELETE is not allowed"),
            ("SELECT 1 / (n - 1) FROM cpu", 400, ""),
            ("DROP TABLE cpu", 403, "delete_enabled"),
        ] {
            let reply = ask(&server, format, sql).await;
            assert_eq!(reply.status, status, "{format} {sql}: {reply:?}");
            if format == "msgpack" {
                let answer: Value = rmp_serde::from_slice(&reply.body).unwrap();
                assert!(answer["error"].as_str().unwrap().to_lowercase().contains(&reason.to_lowercase()), "{answer}");
                assert_eq!((&answer["success"], reply.header("content-type")), (&json!(false), "application/msgpack"));
            } else {
                assert_eq!(reply.json()["success"], false);
                reply.is(status, reason);
            }
        }
    }
    // Readers of objects and of files would keep one of the two.
    for (format, status) in [("json", 200), ("csv", 200), ("arrow", 200), ("ndjson", 400), ("parquet", 400)] {
        let reply = ask(&server, format, "SELECT a.n, b.n FROM cpu a, cpu b").await;
        assert_eq!(reply.status, status, "{format}: {reply:?}");
    }
}

#[tokio::test]
async fn each_type_has_a_form_or_is_refused() {
    let types = [
        ("NULL", "Null"),
        ("true", "Boolean"),
        ("1", "Int8"),
        ("1", "Int16"),
        ("1", "Int32"),
        ("-9223372036854775808", "Int64"),
        ("1", "UInt8"),
        ("1", "UInt16"),
        ("1", "UInt32"),
        ("18446744073709551615", "UInt64"),
        ("1.5", "Float16"),
        ("1.5", "Float32"),
        ("'NaN'", "Float64"),
        ("1.5", "Decimal32(5, 2)"),
        ("1.5", "Decimal64(5, 2)"),
        ("1.5", "Decimal128(38, 10)"),
        ("1.5", "Decimal256(76, 10)"),
        ("'x'", "Utf8"),
        ("'x'", "LargeUtf8"),
        ("'x'", "Utf8View"),
        ("'x'", "Binary"),
        ("'x'", "LargeBinary"),
        ("'x'", "BinaryView"),
        ("arrow_cast('xy', 'Binary')", "FixedSizeBinary(2)"),
        ("'x'", "Dictionary(Int32, Utf8)"),
        ("1", "Dictionary(Int8, Int64)"),
        ("'2024-01-01'", "Date32"),
        ("'2024-01-01'", "Date64"),
        ("2147483647", "Date32"),
        ("'12:00:00'", "Time32(Second)"),
        ("'12:00:00'", "Time32(Millisecond)"),
        ("'12:00:00'", "Time64(Microsecond)"),
        ("'12:00:00'", "Time64(Nanosecond)"),
        ("-9223372036854775808", "Timestamp(Second, None)"),
        ("9223372036854775807", "Timestamp(Millisecond, None)"),
        ("-9223372036854775808", "Timestamp(Microsecond, Some(\"UTC\"))"),
        ("-9223372036854775808", "Timestamp(Nanosecond, Some(\"Europe/Berlin\"))"),
        ("9223372036854775807", "Duration(Second)"),
        ("-9223372036854775808", "Duration(Nanosecond)"),
        ("'1 month'", "Interval(YearMonth)"),
        ("'1 day'", "Interval(DayTime)"),
        ("'1 month 1 day 1 ns'", "Interval(MonthDayNano)"),
        ("[1, 2]", "List(Int64)"),
        ("[1, 2]", "LargeList(Int64)"),
        ("[1, 2]", "FixedSizeList(2, Int64)"),
    ];
    let server = Server::new();
    for (value, data_type) in types {
        let cast = |value: &str| format!("arrow_cast({value}, '{data_type}')");
        let (one, null) = (cast(value), cast("NULL"));
        let statements = [
            format!("SELECT {one} AS x"),
            format!("SELECT {null} AS x"),
            format!("SELECT {one} AS x UNION ALL SELECT {null}"),
            format!("SELECT [{one}] AS x"),
            format!("SELECT [{null}, {one}] AS x"),
            format!("SELECT struct({one} AS a, {null} AS b) AS x"),
            format!("SELECT MAP(['k'], [{one}]) AS x"),
        ];
        for (format, sql) in FORMATS.iter().flat_map(|format| statements.iter().map(move |sql| (format, sql))) {
            let reply = ask(&server, format, sql).await;
            let said = String::from_utf8_lossy(&reply.body);
            assert!(matches!(reply.status.as_u16(), 200 | 400), "{format} {sql}: {} {said}", reply.status);
        }
    }
}

/// Fails long after an answer has begun.
const LATE: &str = "SELECT value, 1 / (value - 2999999) AS r FROM generate_series(1, 3000000)";

#[tokio::test]
async fn what_fails_late_breaks_every_form_that_has_begun() {
    let server = Server::new();
    for format in FORMATS {
        let body = json!({ "sql": LATE }).to_string();
        let request = Request::post(format!("/api/v1/query?format={format}")).body(Body::from(body)).unwrap();
        let response = server.router.clone().oneshot(request).await.unwrap();
        if matches!(format, "msgpack" | "pretty") {
            assert_eq!(response.status(), 400, "{format} is sent when all of it is there");
        } else {
            assert_eq!(response.status(), 200, "{format}");
            assert!(response.into_body().collect().await.is_err(), "{format}");
        }
    }
}

#[tokio::test]
async fn a_client_sees_that_an_answer_is_broken() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.no_auth = true;
    config.data_dir = dir.path().join("data");
    config.http = "127.0.0.1:0".parse().unwrap();
    let listening = Listening::start(&config).await.unwrap();
    let address = listening.address();
    let running = tokio::spawn(listening.run(std::future::pending()));
    for (format, version) in
        [("json", "1.1"), ("ndjson", "1.1"), ("csv", "1.1"), ("arrow", "1.1"), ("parquet", "1.1"), ("csv", "1.0")]
    {
        let body = json!({ "sql": LATE }).to_string();
        let length = body.len();
        let request = format!(
            "POST /api/v1/query?format={format} HTTP/{version}\r\nhost: localhost\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // The connection may be reset.
        let _ = stream.read_to_end(&mut answer).await;
        let head = String::from_utf8_lossy(&answer[..answer.len().min(1_000)]).to_lowercase();
        if version == "1.0" {
            assert!(head.contains(" 505 "), "{head}");
            continue;
        }
        assert!(head.starts_with("http/1.1 200 ok\r\n") && head.contains("transfer-encoding: chunked"), "{head}");
        assert!(answer.len() > 60_000 && !answer.ends_with(b"0\r\n\r\n"), "{format}: {}", answer.len());
    }
    running.abort();
}

#[tokio::test]
async fn answers_are_compressed_for_those_who_take_it() {
    let server = Server::new();
    let body = json!({ "sql": "SELECT value, 'the same text' AS t FROM generate_series(1, 20000)" }).to_string();
    for format in FORMATS.into_iter().filter(|format| *format != "pretty") {
        let path = format!("/api/v1/query?format={format}");
        let plain = server.post(&path, body.clone()).await;
        assert!(!plain.headers.contains_key("content-encoding"));
        assert_eq!(plain.header("vary"), "Accept, Accept-Encoding");
        for (accepted, coding) in [("gzip, deflate", "gzip"), ("gzip, zstd", "zstd"), ("br", "")] {
            let reply = server.send(Method::POST, &path, &[("accept-encoding", accepted)], body.clone()).await;
            let coded = reply.headers.get("content-encoding").map_or("", |value| value.to_str().unwrap());
            let is_plain = matches!(format, "arrow" | "parquet");
            assert_eq!(coded, if is_plain { "" } else { coding }, "{format} {accepted}");
            let unpacked = match coded {
                "gzip" => {
                    let mut out = Vec::new();
                    flate2::read::GzDecoder::new(&*reply.body).read_to_end(&mut out).unwrap();
                    out
                }
                "zstd" => zstd::stream::decode_all(&*reply.body).unwrap(),
                _ => reply.body.to_vec(),
            };
            // The two have taken their own times to run.
            assert!(unpacked.len().abs_diff(plain.body.len()) < 20, "{format} {accepted}");
            assert!(coded.is_empty() || reply.body.len() < unpacked.len() / 2, "{format} {accepted}");
        }
    }
}

#[tokio::test]
async fn a_long_answer_is_whole_in_every_form() {
    const ROWS: usize = 200_000;
    let server = Server::new();
    let sql = format!("SELECT value FROM generate_series(0, {}) ORDER BY value", ROWS - 1);
    let is_whole = |values: &mut dyn Iterator<Item = i64>| values.eq(0..ROWS as i64);
    let lines = ask(&server, "ndjson", &sql).await;
    let value = |line: &str| serde_json::from_str::<Value>(line).unwrap()["value"].as_i64().unwrap();
    assert!(is_whole(&mut text(&lines).lines().map(value)));
    let csv = ask(&server, "csv", &sql).await;
    assert!(is_whole(&mut text(&csv).lines().skip(1).map(|line| line.parse().unwrap())));
    let packed: Value = rmp_serde::from_slice(&ask(&server, "msgpack", &sql).await.body).unwrap();
    assert!(is_whole(&mut packed["data"][0].as_array().unwrap().iter().map(|value| value.as_i64().unwrap())));
    assert_eq!(packed["row_count"], ROWS);
    let parquet = of_parquet(&ask(&server, "parquet", &sql).await.body);
    assert!(is_whole(&mut parquet.column(0).as_primitive::<Int64Type>().values().iter().copied()));
    let arrow = ask(&server, "arrow", &sql).await;
    let batches = StreamReader::try_new(&*arrow.body, None).unwrap().map(Result::unwrap);
    let values = batches.flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
    assert!(is_whole(&mut values.into_iter()));
    ask(&server, "pretty", &sql).await.is(400, "at most 10000 rows");
}

#[tokio::test]
async fn an_estimate_counts_and_warns() {
    let server = Server::new();
    server.lines(SCENE).await;
    let estimate =
        async |sql: &str| server.post("/api/v1/query/estimate?db=t", json!({ "sql": sql }).to_string()).await;
    for (sql, rows, level) in [
        ("SELECT * FROM cpu", 2, "none"),
        ("SELECT * FROM cpu; ", 2, "none"),
        ("SELECT * FROM cpu -- all", 2, "none"),
        ("SELECT * FROM cpu ; -- all; of it", 2, "none"),
        ("SELECT * FROM generate_series(1, 20000)", 20_000, "low"),
        ("SELECT * FROM generate_series(1, 200000)", 200_000, "medium"),
        ("SELECT * FROM generate_series(1, 2000000)", 2_000_000, "high"),
    ] {
        let answer = estimate(sql).await.json();
        assert_eq!(answer["success"], true, "{sql}: {answer}");
        assert_eq!((&answer["estimated_rows"], &answer["warning_level"]), (&json!(rows), &json!(level)), "{sql}");
    }
    let failed = estimate("SELECT * FROM nothing").await;
    assert_eq!((failed.status.as_u16(), &failed.json()["success"]), (200, &json!(false)));
    assert_eq!(failed.json()["warning_level"], "error");
    estimate("SHOW TABLES").await.is(400, "SHOW");
    server.post("/api/v1/query/estimate", "{}").await.is(400, "the key sql is missing");
    let metrics = server.get("/api/v1/metrics").await;
    assert!(metrics.json()["arc_ingest_records_total"] == 2, "{metrics:?}");
    let history = server.get("/api/v1/metrics/timeseries/api?duration_minutes=5").await.json();
    assert_eq!(
        (&history["type"], &history["duration_minutes"], &history["points_count"]),
        (&json!("api"), &json!(5), &json!(1))
    );
    assert!(history["data"][0]["values"]["arc_http_requests_total"].is_number(), "{history}");
    server.get("/api/v1/metrics/timeseries/gc").await.is(404, "application");
    server.get("/api/v1/metrics/timeseries/api?duration_minutes=1441").await.is(400, "1440");
    let parts = server.get("/api/v1/metrics/endpoints").await.json();
    assert_eq!((&parts["ingestion"]["records_total"], &parts["query"]["errors_total"]), (&json!(2), &json!(0)));
    assert!(parts["timestamp"].is_string() && parts["http"]["requests_total"].is_u64());
}

#[tokio::test]
async fn rows_of_a_table_need_no_statement() {
    let server = Server::new();
    server.lines("my-m,host=a n=1i 1\nmy-m,host=b n=2i 2\nmy-m,host=a n=3i 3").await;
    for (params, expected) in [
        ("", json!([[3], [2], [1]])),
        ("&limit=1", json!([[3]])),
        ("&limit=1&offset=1", json!([[2]])),
        ("&order_by=n", json!([[1], [2], [3]])),
        ("&order_by=n%20--", json!([[1], [2], [3]])),
        ("&where=host%20=%20'a'", json!([[3], [1]])),
        ("&where=host%20=%20'a'%20--%20all&order_by=n%20ASC&limit=1", json!([[1]])),
    ] {
        let answer = server.get(&format!("/api/v1/query/my-m?database=t{params}")).await.json();
        assert_eq!(answer["columns"], json!(["time", "host", "n"]), "{params}: {answer}");
        let n: Vec<_> = answer["data"].as_array().unwrap().iter().map(|row| json!([row[2]])).collect();
        assert_eq!(json!(n), expected, "{params}");
    }
    let csv = server.get("/api/v1/query/my-m?database=t&format=csv&limit=1").await;
    assert_eq!(text(&csv), "time,host,n\n1970-01-01T00:00:00.000000003Z,a,3\n");
    for (path, status) in [
        ("/api/v1/query/nothing?database=t", 404),
        ("/api/v1/query/my-m", 404),
        ("/api/v1/query/my-m?database=t&limit=0", 400),
        ("/api/v1/query/my-m?database=t&limit=1000001", 400),
        ("/api/v1/query/my-m?database=t&offset=-1", 400),
        ("/api/v1/query/my-m?database=t&where=n%20=", 400),
        ("/api/v1/query/my-m?database=t&where=true);%20DROP%20TABLE%20x;%20SELECT%20(1", 400),
    ] {
        let reply = server.get(path).await;
        assert_eq!(reply.status, status, "{path}: {reply:?}");
        assert_eq!(reply.json()["success"], false);
    }
    let long = format!("/api/v1/query/my-m?database=t&order_by={}", "n,".repeat(200));
    server.get(&long).await.is(400, "more than 256");
}

/// Returns rows as texts, whatever the types of their columns are.
fn as_texts(batches: &[RecordBatch]) -> Vec<Vec<Option<String>>> {
    let rows = |batch: &RecordBatch| {
        let columns = batch.columns().iter().map(|column| arrow::compute::cast(column, &DataType::Utf8).unwrap());
        let columns: Vec<_> = columns.collect();
        let text = |row| columns.iter().map(move |column| column.as_string::<i32>().iter().nth(row).unwrap());
        (0..batch.num_rows()).map(|row| text(row).map(|text| text.map(str::to_owned)).collect()).collect::<Vec<_>>()
    };
    batches.iter().flat_map(rows).collect()
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[tokio::test]
async fn a_tag_that_no_row_has_is_null_in_every_form() {
    let server = Server::new();
    server.lines("l,k=a x=1i 1\nother,k=zz y=1i 1\nw,host=a v=1i 1\nw,host=b v=2i 2").await;
    // A tag that the first rows do not have.
    server.lines("w,host=a,rack=r v=3i 3").await;
    for sql in [
        "SELECT l.k, o.k AS ok FROM l LEFT JOIN other o ON l.k = o.k",
        "SELECT l.k, o.k AS ok FROM l RIGHT JOIN other o ON l.k = o.k",
        "SELECT l.k, o.k AS ok FROM l FULL JOIN other o ON l.k = o.k ORDER BY 1",
        "SELECT l.k, o.k AS ok FROM l LEFT JOIN other o ON l.k = o.k WHERE o.k IS NULL",
        "SELECT o.k, count(*) FROM l LEFT JOIN other o ON l.k = o.k GROUP BY o.k",
        "SELECT DISTINCT o.k FROM l LEFT JOIN other o ON l.k = o.k",
        "SELECT upper(o.k) FROM l LEFT JOIN other o ON l.k = o.k",
        "SELECT l.k, o.k AS ok FROM l ASOF LEFT JOIN other o ON l.k = o.k AND l.time >= o.time",
        "SELECT o.k FROM l LEFT JOIN other o ON l.k = o.k UNION ALL SELECT NULL",
        "SELECT lag(k) OVER (ORDER BY time) AS before FROM l",
        "SELECT host, rack, v FROM w ORDER BY time LIMIT 2",
        "SELECT host, rack FROM w WHERE host = 'b'",
        "SELECT max(rack) FROM w WHERE host = 'b'",
        "SELECT k FROM l WHERE k = 'none'",
    ] {
        let expected = as_texts(&ask(&server, "arrow", sql).await.batches());
        let json = ask(&server, "json", sql).await;
        assert_eq!(json.status, 200, "{sql}: {json:?}");
        let rows = json.json()["data"].as_array().unwrap().clone();
        let rows: Vec<Vec<_>> = rows.iter().map(|row| row.as_array().unwrap().iter().map(as_text).collect()).collect();
        assert_eq!(rows, expected, "{sql}");
        let packed: Value = rmp_serde::from_slice(&ask(&server, "msgpack", sql).await.body).unwrap();
        for (at, column) in packed["data"].as_array().unwrap().iter().enumerate() {
            let column: Vec<_> = column.as_array().unwrap().iter().map(as_text).collect();
            assert_eq!(column, expected.iter().map(|row| row[at].clone()).collect::<Vec<_>>(), "{sql}");
        }
        let lines = ask(&server, "ndjson", sql).await;
        assert_eq!(text(&lines).lines().count(), expected.len(), "{sql}");
        let csv = ask(&server, "csv", sql).await;
        assert_eq!(text(&csv).lines().count(), expected.len() + 1, "{sql}");
        assert_eq!(ask(&server, "pretty", sql).await.status, 200, "{sql}");
        assert_eq!(of_parquet(&ask(&server, "parquet", sql).await.body).num_rows(), expected.len(), "{sql}");
    }
}
