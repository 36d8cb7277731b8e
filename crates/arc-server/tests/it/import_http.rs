//! `/api/v1/import/…`: the answers that clients of the existing server read, and what is refused.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use hyper::Method;
use serde_json::json;

use crate::support::{Reply, Server, gzip};

const BOUNDARY: &str = "x7";

/// Wraps a file as `curl -F file=@name` does, with another part before it.
pub(crate) fn form(part: &str, name: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n--{BOUNDARY}\r\n\
         Content-Disposition: form-data; name=\"{part}\"; filename=\"{name}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    [head.as_bytes(), bytes, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat()
}

pub(crate) async fn upload(server: &Server, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Reply {
    let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
    let headers: Vec<_> = headers.iter().copied().chain([("content-type", content_type.as_str())]).collect();
    server.send(Method::POST, path, &headers, body).await
}

#[tokio::test]
async fn csv_is_stored_and_described() {
    let server = Server::new();
    let body = form("file", "a.csv", b"a title\nts;host;v;ok\n1700000000;a;1;true\n1700090000;b;2.5;\n");
    let path = "/api/v1/import/csv?measurement=m&time_column=ts&time_format=epoch_s&delimiter=%3B&skip_rows=1";
    let reply = upload(&server, path, &[("x-arc-database", "t")], body).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let mut answer = reply.json();
    assert!(answer["result"].as_object_mut().unwrap().remove("duration_ms").unwrap().is_u64());
    assert_eq!(
        answer,
        json!({ "status": "ok", "result": {
            "database": "t",
            "measurement": "m",
            "rows_imported": 2,
            "rows_rejected": 0,
            "rejected": [],
            "partitions_created": 2,
            "time_range_min": "2023-11-14T22:13:20Z",
            "time_range_max": "2023-11-15T23:13:20Z",
            "columns": ["time", "host", "v", "ok"],
            "types": [
                { "column": "ts", "type": "time", "row": null, "value": null },
                { "column": "host", "type": "string", "row": 3, "value": "a" },
                { "column": "v", "type": "float", "row": 4, "value": "2.5" },
                { "column": "ok", "type": "boolean", "row": 3, "value": "true" },
            ],
            "time_form": null,
        }})
    );
    let rows = json!([["2023-11-14T22:13:20Z", "a", 1, true], ["2023-11-15T23:13:20Z", "b", 2.5, null]]);
    assert_eq!(server.rows("SELECT time, host, v, ok FROM m ORDER BY time").await, rows);
}

#[tokio::test]
async fn a_check_says_what_would_be_stored_and_stores_nothing() {
    let server = Server::new();
    server.lines("m,host=a v=1i 1").await;
    let csv = b"time,host,v\n1700000000,a,1\n1700000000,a,2\n1700000001,b,x\n";
    let path = "/api/v1/import/csv?db=t&measurement=m&tags=host&precision=s&check=";
    let checked = upload(&server, &format!("{path}true"), &[], form("file", "a.csv", csv)).await.json();
    let result = &checked["result"];
    assert_eq!((&checked["status"], &result["check"]), (&json!("partial"), &json!(true)), "{checked}");
    assert_eq!((&result["rows_imported"], &result["rows_rejected"]), (&json!(2), &json!(1)), "{checked}");
    // The table says that host is a tag, and that v is no text.
    assert_eq!((&result["rows_merged"], &result["rejected"][0]["row"]), (&json!(1), &json!(4)), "{checked}");
    assert_eq!(server.rows("SELECT host, v FROM m").await, json!([["a", 1]]));
    let new =
        upload(&server, "/api/v1/import/lp?db=new&check=true", &[], form("file", "a.lp", b"n v=1\nn v=2\n")).await;
    assert_eq!(new.json()["result"]["rows_imported"], 2, "{new:?}");
    assert!(server.engine.databases().iter().all(|database| database.name != "new"));
    assert_eq!(server.get("/api/v1/import/stats").await.json()["stats"]["total_records"], 0);
    let left = std::fs::read_dir(server.engine.path().join("tmp/query")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().path()).filter(|path| path.join("data").exists()).collect();
    assert!(left.is_empty(), "{left:?}");
    upload(&server, &format!("{path}yes"), &[], form("file", "a.csv", csv)).await.is(400, "expected true or false");
    let stored = upload(&server, &format!("{path}false"), &[], form("file", "a.csv", csv)).await.json();
    assert_eq!((&stored["result"]["rows_imported"], &stored["result"]["check"]), (&json!(2), &json!(null)), "{stored}");
}

#[tokio::test]
async fn parquet_and_lines_are_stored_and_counted() {
    let server = Server::new();
    let time: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1, 2]));
    let host: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let n: ArrayRef = Arc::new(Int64Array::from(vec![7, 8]));
    let batch = RecordBatch::try_from_iter([("time", time), ("host", host), ("n", n)]).unwrap();
    let reply = upload(
        &server,
        "/api/v1/import/parquet?db=t&measurement=p&tags=host",
        &[],
        form("file", "x", &crate::support::parquet(&batch)),
    );
    let answer = reply.await.json();
    assert_eq!((&answer["status"], &answer["result"]["rows_imported"]), (&json!("ok"), &json!(2)), "{answer}");
    let lines = gzip(b"m,h=a v=1 5\nother v=1 5\nm v=oops 6\nm,h=b v=2 7\n");
    let reply = upload(&server, "/api/v1/import/lp?db=t&measurement=m&precision=ms", &[], form("file", "x.gz", &lines));
    let answer = reply.await.json();
    let result = &answer["result"];
    assert_eq!(answer["status"], "partial");
    assert_eq!((&result["rows_imported"], &result["rows_rejected"]), (&json!(2), &json!(1)), "{answer}");
    assert_eq!((&result["measurements"], &result["precision"]), (&json!(["m"]), &json!("ms")));
    assert_eq!(
        (&result["rejected"][0]["row"], &result["time_range_max"]),
        (&json!(3), &json!("1970-01-01T00:00:00.007Z"))
    );
    let counted = "SELECT (SELECT count(*) FROM p WHERE host = 'a') AS a, (SELECT count(*) FROM m) AS b";
    assert_eq!(server.rows(counted).await, json!([[1, 2]]));
    let stats = server.get("/api/v1/import/stats").await.json();
    let expected =
        json!({ "status": "success", "stats": { "total_requests": 2, "total_records": 4, "total_errors": 0 } });
    assert_eq!(stats, expected);
}

#[tokio::test]
async fn a_file_is_stored_again_unless_the_request_has_a_key() {
    let server = Server::new();
    let path = "/api/v1/import/csv?db=t&measurement=m&precision=s";
    for (key, rows) in [(None, 1), (None, 2), (Some("k"), 3), (Some("k"), 3), (Some("l"), 4)] {
        let headers: Vec<_> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
        let reply = upload(&server, path, &headers, form("file", "a.csv", b"time,v\n1,2\n")).await;
        assert_eq!(reply.json()["result"]["rows_imported"], 1, "{reply:?}");
        assert_eq!(server.rows("SELECT count(*) FROM m").await, json!([[rows]]));
    }
}

#[tokio::test]
async fn what_is_no_key_of_a_write_is_none_of_an_import() {
    let server = Server::new();
    // An empty one would be a key that all who send none like it share.
    for key in ["", " ", &"k".repeat(256)] {
        for path in ["/api/v1/import/csv?db=t&measurement=m", "/api/v1/import/lp?db=t"] {
            let form = form("file", "a.csv", b"time,v\n1,2\n");
            upload(&server, path, &[("idempotency-key", key)], form).await.is(400, "idempotency key");
        }
    }
    assert!(server.engine.databases().is_empty());
}

#[tokio::test]
async fn bad_imports_are_refused_with_what_is_wrong() {
    let server = Server::with(|config| config.limits.import_bytes = 100 << 10);
    let path = "/api/v1/import/csv?db=t&measurement=m&precision=s";
    let csv = || form("file", "a.csv", b"time,v\n1,2\n");
    let cut = csv()[..csv().len() - 10].to_vec();
    let bomb = gzip(&vec![0; 200 << 10]);
    let cases: [(&str, Vec<u8>, u16, &str); 14] = [
        ("/api/v1/import/csv?db=t", csv(), 400, "measurement is required"),
        ("/api/v1/import/parquet?db=t", csv(), 400, "measurement is required"),
        ("/api/v1/import/csv?db=t&measurement=m&time_format=unix", csv(), 400, "time_format"),
        ("/api/v1/import/csv?db=t&measurement=m&delimiter=ab", csv(), 400, "delimiter"),
        ("/api/v1/import/csv?db=t&measurement=m&skip_rows=-1", csv(), 400, "skip_rows"),
        ("/api/v1/import/csv?db=t&measurement=m", csv(), 422, "\"1\" may be a date, a year"),
        ("/api/v1/import/csv?db=t&measurement=m&exclude=w", csv(), 422, "no column \"w\""),
        (path, form("data", "a.csv", b"time,v\n1,2\n"), 400, "no part called file"),
        (path, cut, 400, "form is not whole"),
        (path, form("file", "a.csv", b"a,b\n1,2\n"), 422, "no column \"time\""),
        ("/api/v1/import/parquet?db=t&measurement=m", csv(), 422, "no good Parquet file"),
        (path, form("file", "a.csv", &vec![b'x'; 200 << 10]), 413, "max_import_bytes"),
        ("/api/v1/import/parquet?db=t&measurement=m", form("file", "a", &bomb), 422, "when it is unpacked"),
        ("/api/v1/import/csv?db=information_schema&measurement=m&precision=s", csv(), 400, "information_schema"),
    ];
    for (path, body, status, says) in cases {
        upload(&server, path, &[], body).await.is(status, says);
    }
    server.post(path, "time,v\n1,2\n").await.is(400, "multipart/form-data");
    server.lines("m v=\"text\" 1").await;
    upload(&server, path, &[], form("file", "a.csv", b"time,v\n1,2\n")).await;
    assert_eq!(server.rows("SELECT count(*) FROM m").await, json!([[2]]));
    assert_eq!(server.get("/api/v1/import/stats").await.json()["stats"]["total_errors"], 15);
}
