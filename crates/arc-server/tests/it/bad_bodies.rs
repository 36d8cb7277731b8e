//! Bodies that are not what they should be, before anyone looks at points.

use std::io::Write;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use hyper::Method;

use crate::support::{Server, gzip, zstd};

const LP: &str = "/write?db=t";
/// Where a write of nothing is one that has gone wrong: on InfluxDB's paths it is stored.
const OWN_LP: &str = "/api/v1/write/line-protocol?db=t";
const PACK: &str = "/api/v1/write/msgpack?db=t";

#[tokio::test]
async fn an_empty_body_is_refused() {
    let server = Server::new();
    for body in [vec![], gzip(b""), zstd(b"")] {
        server.post(OWN_LP, body.clone()).await.is(400, "Empty request body");
        server.post(PACK, body).await.is(400, "Empty payload");
    }
    for path in ["/api/v1/query", "/api/v1/query/arrow", "/api/v1/databases"] {
        assert_eq!(server.post(path, "").await.status, 400, "{path}");
    }
}

#[tokio::test]
async fn a_body_without_a_point_is_refused() {
    let server = Server::new();
    for body in ["\n", "# comment\n", "\r\n\n#\n  \n"] {
        server.post(OWN_LP, body).await.is(400, "No valid records in request");
    }
    assert!(server.engine.databases().is_empty() || server.engine.tables("t").is_ok_and(|tables| tables.is_empty()));
}

#[tokio::test]
async fn truncated_compression_is_named() {
    let server = Server::new();
    let lines = "m,host=a v=1 1\n".repeat(50);
    for (whole, name) in [(gzip(lines.as_bytes()), "gzip"), (zstd(lines.as_bytes()), "zstd")] {
        for cut in [1, 4, whole.len() / 2] {
            let body = whole[..whole.len() - cut].to_vec();
            server.post(LP, body.clone()).await.is(400, &format!("Invalid {name} compression"));
            server.post(PACK, body).await.is(400, &format!("Invalid {name} compression"));
        }
    }
    assert!(server.engine.databases().is_empty(), "nothing of them was stored");
}

#[tokio::test]
async fn a_body_that_is_not_what_its_header_says_is_explained() {
    let server = Server::new();
    for encoding in ["gzip", "zstd", "br"] {
        let headers = [("content-encoding", encoding)];
        for lines in ["\u{1}\u{2}not compressed", "m v=1 1\n\u{1}not compressed"] {
            let reply = server.send(Method::POST, LP, &headers, lines).await;
            reply.is(400, &format!("Content-Encoding says {encoding}"));
        }
        let reply = server.send(Method::POST, PACK, &headers, "\u{1}not compressed").await;
        reply.is(400, &format!("Content-Encoding says {encoding}"));
    }
}

#[tokio::test]
async fn a_bomb_gets_413() {
    // 1 GiB of zeros in 1 MiB.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![0; 1 << 20]).unwrap();
    let bomb = Bytes::from(encoder.finish().unwrap().repeat(1024));
    assert!(bomb.len() < 2 << 20, "{}", bomb.len());
    let server = Server::with(|config| config.limits.decompressed_bytes = 1 << 20);
    server.post(LP, bomb.clone()).await.is(413, "larger than 1048576 bytes (max_decompressed_bytes)");
    server.post(PACK, bomb).await.is(413, "max_decompressed_bytes");
    let bomb = zstd(&vec![0; 64 << 20]);
    server.post(LP, bomb).await.is(413, "max_decompressed_bytes");
}

#[tokio::test]
async fn a_large_body_gets_413() {
    let server = Server::with(|config| config.limits.body_bytes = 100);
    let body = "m v=1 1\n".repeat(13);
    for path in [LP, PACK] {
        server.post(path, body.clone()).await.is(413, "larger than 100 bytes (max_body_bytes)");
        // Refused by what the header announces, before anything is read.
        let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let headers = [("content-length", "101")];
        server.send(Method::POST, path, &headers, never).await.is(413, "max_body_bytes");
        // Without a header, as soon as there is too much.
        let pieces = Body::from_stream(stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(b"m v=1\n"))));
        server.send(Method::POST, path, &[], pieces).await.is(413, "max_body_bytes");
    }
    assert_eq!(server.post(LP, "m v=1 1\n".repeat(12)).await.status, 204);
}

#[tokio::test]
async fn a_body_in_pieces_is_put_together() {
    let server = Server::new();
    let pieces = ["m v=", "", "1 1\nm v", "=2 2"].map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece)));
    assert_eq!(server.post(LP, Body::from_stream(stream::iter(pieces))).await.status, 204);
    assert_eq!(server.rows("SELECT v FROM m ORDER BY v").await, serde_json::json!([[1], [2]]));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_refused() {
    let server = Server::new();
    let pieces = [Ok(Bytes::from("m v=1 1\n")), Err(std::io::Error::other("gone"))];
    server.post(LP, Body::from_stream(stream::iter(pieces))).await.is(400, "ended early");
    assert!(server.engine.databases().is_empty());
}

#[tokio::test]
async fn a_body_that_stops_coming_gets_408() {
    let server = Server::with(|config| config.limits.read_timeout = std::time::Duration::from_millis(1));
    let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    server.post(LP, never).await.is(408, "no part of the request body came");
}

#[tokio::test]
async fn wrong_options_are_named() {
    let server = Server::new();
    for (path, headers, expected) in [
        ("/write?precision=d", vec![], "expected ns, us, ms, s, m or h"),
        ("/write?precision=NS", vec![], "expected ns, us, ms, s, m or h"),
        ("/write?durability=forever", vec![], "expected memory, process, disk or remote"),
        ("/write?db=%FF", vec![], "percent-encoded UTF-8"),
        ("/write", vec![("x-arc-durability", "x")], "expected memory, process, disk or remote"),
        ("/api/v1/write/msgpack", vec![("x-arc-precision", "x")], "expected ns, us, ms, s, m or h"),
    ] {
        server.send(Method::POST, path, &headers, "m v=1 1").await.is(400, expected);
    }
    assert!(server.engine.databases().is_empty());
}

#[tokio::test]
async fn database_names_that_cannot_be_are_refused() {
    let server = Server::new();
    let long = "x".repeat(300);
    for name in ["a%00b", "a%0Ab", "%7F", long.as_str()] {
        let reply = server.post(&format!("/write?db={name}"), "m v=1 1").await;
        reply.is(400, "database name");
    }
    for name in ["a/b", "..", "../../etc", "a b", "%F0%9F%98%80", "%C3%BC", "CON", "a%25b"] {
        let path = format!("/write?db={}", name.replace(' ', "%20"));
        assert_eq!(server.post(&path, "m v=1 1").await.status, 204, "{name}");
    }
}
