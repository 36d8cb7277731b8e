//! Line protocol with bad lines between good ones: the good are stored, the bad are named, nothing is guessed.

use serde_json::json;

use crate::support::{Server, gzip, zstd};

const LP: &str = "/write?db=t";

#[tokio::test]
async fn each_bad_line_is_named_and_the_good_are_stored() {
    let bad: [&[u8]; 14] = [
        b"cpu",                          // no field
        b"cpu ",                         // no field
        b",host=a v=1",                  // no measurement
        b"cpu,host v=1",                 // a tag without a value
        b"cpu,host= v=1",                // a tag with an empty value
        b"cpu,=a v=1",                   // a tag without a name
        b"cpu v",                        // a field without a value
        b"cpu v= 1",                     // a field with an empty value
        b"cpu =1",                       // a field without a name
        b"cpu v=1 12x",                  // a timestamp that is none
        b"cpu v=abc",                    // a value that is none
        b"cpu v=9223372036854775808i",   // an integer out of range
        b"cpu v=1 99999999999999999999", // a timestamp out of range
        b"cpu v=1 1 1",                  // something behind the timestamp
    ];
    for line in bad {
        let server = Server::new();
        let body = [b"good v=1i 1\n", line, b"\ngood v=2i 2"].concat();
        let reply = server.post(LP, body).await;
        let text = String::from_utf8_lossy(line);
        reply.is(400, "partial write: 1 of 3 lines rejected, 2 stored; line 2");
        let answer = reply.json();
        assert_eq!(
            (&answer["stored"], &answer["rejected"], &answer["code"]),
            (&json!(2), &json!(1), &json!("invalid"))
        );
        let lines = answer["lines"].as_array().unwrap();
        assert_eq!((lines.len(), &lines[0]["line"]), (1, &json!(2)), "{text}");
        assert!(lines[0]["column"].as_u64().unwrap() >= 1, "{text}: {answer}");
        assert!(!lines[0]["reason"].as_str().unwrap().is_empty());
        assert_eq!(reply.header("x-arc-durability"), "disk");
        assert_eq!(server.rows("SELECT v FROM good ORDER BY v").await, json!([[1], [2]]), "{text}");
    }
}

/// A body of which every thousandth line is bad, with new columns on the way, text with lines in it, and points that come again.
fn large() -> (Vec<String>, Vec<u64>) {
    let (mut lines, mut bad, mut number) = (Vec::new(), Vec::new(), 1);
    for i in 0..60_000 {
        let (host, time) = (i % 7, i / 7 % 6_000);
        let line = match i {
            _ if i % 1_000 == 999 => {
                bad.push(number);
                format!("m,h={host} v=oops {time}\n")
            }
            20_000.. if i % 500 == 3 => format!("m,h={host} s=\"text {i}\nm,h=none v=1i 1\n\" {time}\n"),
            40_000.. => format!("m,h={host} v={i}i,new=t {time}\n"),
            _ => format!("m,h={host} v={i}i,f=0.5 {time}\n"),
        };
        number += line.matches('\n').count() as u64;
        lines.push(line);
    }
    (lines, bad)
}

#[tokio::test]
async fn a_large_body_gives_what_its_lines_give_in_small_ones() {
    let sql =
        "SELECT h, count(*), sum(v), sum(f), count(new), count(s), max(s), max(time) FROM m GROUP BY h ORDER BY h";
    let (lines, bad) = large();
    let pieces = Server::new();
    for piece in lines.chunks(1_000) {
        pieces.post(LP, piece.concat()).await.is(400, "1 of 1000 lines rejected, 999 stored");
    }
    let expected = pieces.rows(sql).await;
    assert_eq!(expected.as_array().unwrap().len(), 7, "{expected}");
    let body = lines.concat();
    for body in [body.clone().into_bytes(), gzip(body.as_bytes()), zstd(body.as_bytes())] {
        let server = Server::new();
        // The second time all series and columns are known.
        for _ in 0..2 {
            let reply = server.post(LP, body.clone()).await;
            reply.is(400, "60 of 60000 lines rejected, 59940 stored");
            let named: Vec<_> =
                reply.json()["lines"].as_array().unwrap().iter().map(|line| line["line"].as_u64()).collect();
            assert_eq!(named, bad.iter().copied().map(Some).collect::<Vec<_>>());
            assert_eq!(server.rows(sql).await, expected);
        }
    }
}

#[tokio::test]
async fn an_open_quote_is_an_error() {
    let server = Server::new();
    let reply = server.post(LP, "good v=1i 1\ncpu v=\"open 2").await;
    reply.is(400, "1 of 2 lines rejected");
}

#[tokio::test]
async fn invalid_utf8_is_an_error_of_its_line() {
    let server = Server::new();
    let reply = server.post(LP, &b"good v=1i 1\nm,h=\xff v=1 1\nm v=\"\xc3(\" 1\ngood v=2i 2"[..]).await;
    reply.is(400, "2 of 4 lines rejected, 2 stored");
    assert_eq!(server.rows("SELECT count(*) FROM good").await, json!([[2]]));
}

#[tokio::test]
async fn nothing_good_is_400_with_every_line() {
    let server = Server::new();
    let reply = server.post(LP, "a\nb\nc").await;
    reply.is(400, "3 of 3 lines rejected, 0 stored");
    let numbers: Vec<_> = reply.json()["lines"].as_array().unwrap().iter().map(|l| l["line"].clone()).collect();
    assert_eq!(numbers, [json!(1), json!(2), json!(3)]);
}

#[tokio::test]
async fn a_hundred_are_named_and_all_are_counted() {
    let server = Server::new();
    let reply = server.post(LP, format!("good v=1i 1\n{}", "bad\n".repeat(250))).await;
    let answer = reply.json();
    assert_eq!((&answer["stored"], &answer["rejected"]), (&json!(1), &json!(250)));
    assert_eq!(answer["lines"].as_array().unwrap().len(), 100);
}

#[tokio::test]
async fn a_type_conflict_names_column_and_types() {
    let server = Server::new();
    server.lines("m v=1i 1").await;
    let reply = server.post(LP, "m v=\"text\" 2\nm v=2i 3").await;
    reply.is(400, "field type conflict");
    assert_eq!(server.rows("SELECT v FROM m ORDER BY v").await, json!([[1], [2]]));
}

#[tokio::test]
async fn a_field_named_like_a_tag_is_an_error() {
    let server = Server::new();
    server.lines("m,host=a v=1i 1").await;
    let reply = server.post(LP, "m,host=a host=\"b\" 2\nm,host=a v=2i 3\nn,x=a x=1 1").await;
    reply.is(400, "2 of 3 lines rejected, 1 stored");
    assert_eq!(server.rows("SELECT host, v FROM m ORDER BY v").await, json!([["a", 1], ["a", 2]]));
}

#[tokio::test]
async fn names_of_any_kind_come_back_as_sent() {
    let server = Server::new();
    for (n, name) in ["a/b", "..", "a\\ b", "é", "😀", "a.b", "_x", "1st", "CON"].into_iter().enumerate() {
        server.lines(format!("{name} v={n}i 1")).await;
        let sql = format!("SELECT v FROM \"{}\"", name.replace("\\ ", " "));
        assert_eq!(server.rows(&sql).await, json!([[n]]), "{name}");
    }
    for name in ["\u{0}".to_owned(), "x".repeat(300)] {
        let reply = server.post(LP, format!("{name} v=1 1")).await;
        assert_eq!(reply.status, 400, "{name:?}: {reply:?}");
    }
}

#[tokio::test]
async fn timestamps_reach_both_ends_and_no_further() {
    let server = Server::new();
    server.lines(format!("m v=1i {}\nm v=2i {}", i64::MIN, i64::MAX)).await;
    let expected = json!([["1677-09-21T00:12:43.145224192Z", 1], ["2262-04-11T23:47:16.854775807Z", 2]]);
    assert_eq!(server.rows("SELECT time, v FROM m ORDER BY time").await, expected);
    for (precision, time) in
        [("s", "9223372037"), ("ms", "9223372036855"), ("us", "-9223372036854776"), ("h", "2562048")]
    {
        let reply = server.post(&format!("{LP}&precision={precision}"), format!("m v=3i {time}")).await;
        reply.is(400, "1 of 1 lines rejected");
    }
    assert_eq!(server.rows("SELECT count(*) FROM m").await, json!([[2]]));
}

#[tokio::test]
async fn values_at_the_ends_come_back_unaltered() {
    let server = Server::new();
    server.lines(format!("m i={}i,j={}i,u={}u,f=1.7976931348623157e308 1", i64::MIN, i64::MAX, u64::MAX)).await;
    assert_eq!(server.rows("SELECT i, j, u FROM m").await, json!([[i64::MIN, i64::MAX, u64::MAX]]));
    // 309 digits, which the JSON reader of these tests cannot take.
    let text = String::from_utf8(server.ask("SELECT f FROM m").await.body.to_vec()).unwrap();
    let digits = text.split("\"data\":[[").nth(1).unwrap().split(']').next().unwrap();
    assert_eq!(digits.parse(), Ok(f64::MAX));
}
