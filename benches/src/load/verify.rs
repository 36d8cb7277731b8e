//! Counts the rows of a table by SQL over HTTP.

use std::io;

use serde_json::Value;

use super::http::Connection;

/// Returns how many rows `table` has; 0 if there is no such table.
///
/// # Errors
///
/// If the server does not answer with a count.
pub fn count(authority: &str, database: &str, table: &str) -> io::Result<u64> {
    let body = serde_json::json!({ "sql": format!("SELECT count(*) FROM \"{table}\"") }).to_string();
    let head = format!(
        "POST /api/v1/query HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n\
         x-arc-database: {database}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let response = Connection::open(authority)?.exchange(head.as_bytes(), body.as_bytes())?;
    let text = String::from_utf8_lossy(&response.body).into_owned();
    parse(response.status, &text)
        .ok_or_else(|| io::Error::other(format!("counting rows was answered with {}: {text}", response.status)))
}

/// A table that was never written to has no rows: 404, or 200 with no data.
fn parse(status: u16, text: &str) -> Option<u64> {
    if status == 404 {
        return Some(0);
    }
    let answer: Value = serde_json::from_str(text).ok().filter(|_| status == 200)?;
    match answer.pointer("/data/0/0") {
        Some(Value::String(number)) => number.parse().ok(),
        Some(number) => number.as_u64(),
        None => answer.get("data").and_then(Value::as_array).filter(|rows| rows.is_empty()).map(|_| 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_a_count() {
        for (status, text, want) in [
            (200, r#"{"success":true,"columns":["n"],"data":[[1200]],"row_count":1}"#, Some(1200)),
            (200, r#"{"success":true,"columns":["n"],"data":[["1200"]],"row_count":1}"#, Some(1200)),
            (200, r#"{"success":true,"columns":[],"data":[],"row_count":0}"#, Some(0)),
            (404, r#"{"error":"no such table"}"#, Some(0)),
            (200, r#"{"success":false,"data":null}"#, None),
            (200, "", None),
            (500, r#"{"data":[[1]]}"#, None),
        ] {
            assert_eq!(parse(status, text), want, "{status} {text}");
        }
    }
}
