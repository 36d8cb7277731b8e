//! Writes of Arrow IPC: every path and form that is stored, and what is refused with which words.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray},
    datatypes::Int32Type,
    ipc::{
        CompressionType,
        writer::{FileWriter, IpcWriteOptions, StreamWriter},
    },
};
use hyper::Method;
use serde_json::json;

use crate::support::{Server, gzip, zstd};

const STREAM: (&str, &str) = ("content-type", "application/vnd.apache.arrow.stream");
const FILE: (&str, &str) = ("content-type", "Application/vnd.apache.arrow.file");

fn rows(times: &[i64], hosts: &[&str], values: &[f64]) -> RecordBatch {
    let time: ArrayRef = Arc::new(TimestampMillisecondArray::from(times.to_vec()).with_timezone("+02:00"));
    let host: ArrayRef = Arc::new(hosts.iter().copied().collect::<DictionaryArray<Int32Type>>());
    let value: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
    RecordBatch::try_from_iter([("time", time), ("host", host), ("v", value)]).unwrap()
}

fn stream(batch: &RecordBatch, compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn file(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

type Form = fn(&RecordBatch) -> Vec<u8>;
const FORMS: [Form; 5] = [
    |b| stream(b, None),
    |b| stream(b, Some(CompressionType::LZ4_FRAME)),
    file,
    |b| gzip(&file(b)),
    |b| zstd(&stream(b, None)),
];

#[tokio::test]
async fn every_path_and_form_is_stored() {
    let server = Server::new();
    let batch = |n: i64| rows(&[n, n], &["a", "b"], &[0.5, 1.5]);
    let paths = [
        ("/api/v1/write/arrow?db=t&table=m", None),
        ("/api/v1/write/arrow?db=t&measurement=m", Some(STREAM)),
        ("/write?db=t&table=m", Some(STREAM)),
        ("/api/v2/write?bucket=t&table=m", Some(FILE)),
        ("/api/v1/write/line-protocol?db=t&table=m", Some(FILE)),
    ];
    let mut n = 0;
    for (path, content_type) in paths {
        for form in FORMS {
            n += 1;
            let headers: Vec<_> = content_type.into_iter().chain([("x-arc-tags", "host")]).collect();
            let reply = server.send(Method::POST, path, &headers, form(&batch(n))).await;
            assert_eq!(reply.status, 204, "{path}: {reply:?}");
            assert_eq!((reply.header("x-arc-durability"), reply.header("x-arc-points")), ("disk", "2"));
        }
    }
    let all = json!([[2 * n, n, 25_000_000]]);
    let sql = "SELECT count(*), count(DISTINCT time), CAST(max(time) AS BIGINT) FROM m WHERE host IN ('a', 'b')";
    assert_eq!(server.rows(sql).await, all);
    let server = server.reopened();
    assert_eq!(server.rows(sql).await, all);
}

#[tokio::test]
async fn table_tags_time_and_durability_may_be_headers() {
    let server = Server::new();
    let (time, host): (ArrayRef, ArrayRef) =
        (Arc::new(Int64Array::from(vec![5, 5])), Arc::new(StringArray::from(vec!["a", "a"])));
    let batch = RecordBatch::try_from_iter([("ts", time), ("host", host)]).unwrap();
    let headers = [
        ("x-arc-measurement", "höhe"),
        ("x-arc-database", "t"),
        ("x-arc-time-column", "ts"),
        ("x-arc-tags", "host"),
        ("x-arc-precision", "s"),
        ("x-arc-durability", "process"),
    ];
    let reply = server.send(Method::POST, "/api/v1/write/arrow", &headers, stream(&batch, None)).await;
    assert_eq!((reply.status.as_u16(), reply.header("x-arc-durability")), (204, "process"), "{reply:?}");
    assert_eq!(server.rows("SELECT host, CAST(time AS BIGINT) FROM \"höhe\"").await, json!([["a", 5_000_000_000_i64]]));
}

#[tokio::test]
async fn a_key_stores_a_stream_once() {
    let server = Server::new();
    let body = stream(&rows(&[1, 2], &["a", "b"], &[0.5, 1.5]), None);
    for replayed in [false, true] {
        let headers = [STREAM, ("idempotency-key", "k1")];
        let reply = server.send(Method::POST, "/write?db=t&table=m", &headers, body.clone()).await;
        assert_eq!(reply.status, 204, "{reply:?}");
        assert_eq!(reply.headers.contains_key("idempotency-replayed"), replayed);
    }
    // Without tags rows append: a second copy would be two more.
    assert_eq!(server.rows("SELECT count(*) FROM m").await, json!([[2]]));
}

#[tokio::test]
async fn bad_input_is_a_400_that_says_what_and_stores_nothing() {
    let server = Server::with(|config| config.limits.decompressed_bytes = 64 << 10);
    let good = rows(&[1], &["a"], &[0.5]);
    let path = "/api/v1/write/arrow?db=t&table=m";
    assert_eq!(server.post(path, stream(&good, None)).await.status, 204);
    let column = |name: &str, array: ArrayRef| {
        let time: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        stream(&RecordBatch::try_from_iter([("time", time), (name, array)]).unwrap(), None)
    };
    let whole = stream(&good, None);
    let no_time = RecordBatch::try_from_iter([("v", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    let no_rows = stream(&good.slice(0, 0), None);
    let cases: [(&str, Vec<u8>, u16, &str); 10] = [
        ("/api/v1/write/arrow?db=t", whole.clone(), 400, "which table is missing"),
        (path, Vec::new(), 400, "the stream has no rows"),
        (path, no_rows, 400, "the stream has no rows"),
        (path, b"m v=1 1".to_vec(), 400, "invalid Arrow payload"),
        (path, whole[..whole.len() - 8].to_vec(), 400, "cut off"),
        (path, file(&good)[..100].to_vec(), 400, "cut off"),
        (path, column("v", Arc::new(StringArray::from(vec!["x"]))), 400, "column \"v\""),
        (path, stream(&no_time, None), 400, "\"time\""),
        ("/api/v1/write/arrow?db=t&table=m&tags=host", whole.clone(), 400, "tags cannot be declared later"),
        (path, gzip(&vec![0; 65 << 10]), 413, "max_decompressed_bytes"),
    ];
    for (path, body, status, says) in cases {
        server.post(path, body).await.is(status, says);
    }
    assert_eq!(server.rows("SELECT count(*) FROM m").await, json!([[1]]));
}
