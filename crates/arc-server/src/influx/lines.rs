//! `POST /api/v3/write_lp`: line protocol with the parameters and answers of InfluxDB 3.

use std::sync::Arc;

use arc_core::{Durability, Rejected, WriteOptions, Written};
use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use hyper::{HeaderMap, StatusCode};
use memchr::memchr_iter;
use serde_json::{Value, json};

use crate::{
    app::App,
    errors::{Failure, json_response},
    http::params::{self, Params},
    write::{self, Format, Stored, WantedWrite, with_receipt},
};

/// Bytes of a refused line that are sent back.
const LINE_BYTES: usize = 1_000;

/// `POST /api/v3/write_lp`.
pub(crate) async fn write(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let asked = Params::of(&parts.uri).and_then(|params| {
        let (wanted, partial) = asked(&parts.headers, &params)?;
        Ok((wanted.of(&app.auth.caller(&parts.extensions)?)?, partial))
    });
    let stored = match asked {
        Ok((wanted, partial)) => write::store(&app, &parts.headers, body, wanted).await.map(|stored| (stored, partial)),
        Err(failure) => Err(failure),
    };
    match stored {
        Ok((Stored { written, .. }, _)) if written.rejected_points == 0 => {
            with_receipt(StatusCode::NO_CONTENT.into_response(), &written)
        }
        Ok((Stored { written, body, .. }, accepts_partial)) => {
            with_receipt(refused(&written, &body, accepts_partial), &written)
        }
        Err(failure) => failure.into_response(),
    }
}

/// Returns what is asked of the write, and whether good lines are stored beside bad ones.
fn asked(headers: &HeaderMap, params: &Params) -> Result<(WantedWrite, bool), Failure> {
    let database = params::header(headers, "x-arc-database")?.or_else(|| params.get("db"));
    let database = database.ok_or_else(|| Failure::bad_request("missing required parameter \"db\""))?.to_owned();
    let (precision, guess) = match params.get("precision").unwrap_or("auto") {
        "auto" => (None, true),
        "nanosecond" => (Some("ns"), false),
        "microsecond" => (Some("us"), false),
        "millisecond" => (Some("ms"), false),
        "second" => (Some("s"), false),
        other => (Some(other), false),
    };
    let accepts_partial = switch(params, "accept_partial", true)?;
    let mut options: WriteOptions = write::options(headers, &params.without("precision"))?.whole(!accepts_partial);
    if let Some(precision) = precision {
        let unknown =
            |reason| Failure::bad_request(format!("{reason}; or auto, nanosecond, microsecond, millisecond or second"));
        options = options.precision(precision.parse().map_err(unknown)?);
    }
    // Its acknowledgement does not wait for the disk there, either.
    if switch(params, "no_sync", false)? && options.durability.is_none() {
        options = options.durability(Durability::Process);
    }
    let wanted = WantedWrite {
        database,
        table: String::new(),
        options,
        format: Format::LineProtocol,
        guess,
        may_be_empty: false,
    };
    Ok((wanted, accepts_partial))
}

fn switch(params: &Params, name: &str, default: bool) -> Result<bool, Failure> {
    match params.get(name) {
        None => Ok(default),
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(Failure::bad_request(format!("{name}={other} is not valid; expected true or false"))),
    }
}

/// Says which lines were refused. Clients know these texts; what else is stored is said beside them.
fn refused(written: &Written, body: &[u8], accepts_partial: bool) -> Response {
    let ends: Vec<usize> = memchr_iter(b'\n', body).chain([body.len()]).collect();
    let describe = |rejected: &Rejected| -> Value {
        json!({
            "original_line": original(body, &ends, rejected.line),
            "line_number": rejected.line,
            "error_message": rejected.reason,
        })
    };
    let lines = || written.rejected.iter().map(describe).collect::<Vec<_>>();
    let (error, data) = match accepts_partial {
        true => ("partial write of line protocol occurred", Value::from(lines())),
        false => ("parsing failed for write_lp endpoint", lines().into_iter().next().unwrap_or_default()),
    };
    let body = json!({
        "error": error,
        "data": data,
        "stored": written.points,
        "rejected": written.rejected_points,
    });
    json_response(StatusCode::BAD_REQUEST, body.to_string())
}

/// Returns the line with that number, or the start of it; `ends` has where lines end.
fn original(body: &[u8], ends: &[usize], number: u64) -> String {
    let at = usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
    let start = at.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |end| end + 1);
    let line = ends.get(at).and_then(|end| body.get(start..*end)).unwrap_or_default();
    String::from_utf8_lossy(line.get(..LINE_BYTES).unwrap_or(line)).trim_end_matches('\r').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_number() {
        let body = b"one\ntwo\r\n\nfour";
        let ends: Vec<usize> = memchr_iter(b'\n', body).chain([body.len()]).collect();
        for (number, expected) in [(0, "one"), (1, "one"), (2, "two"), (3, ""), (4, "four"), (5, ""), (u64::MAX, "")] {
            assert_eq!(original(body, &ends, number), expected, "{number}");
        }
        let long = "x".repeat(5_000);
        assert_eq!(original(long.as_bytes(), &[5_000], 1).len(), LINE_BYTES);
    }

    #[test]
    fn parameters_are_those_of_influxdb_3() {
        let asked = |query: &str| asked(&HeaderMap::new(), &Params::parse(query).unwrap());
        for (query, guess, whole, durability) in [
            ("db=a", true, false, None),
            ("db=a&precision=auto&accept_partial=false", true, true, None),
            ("db=a&precision=second&no_sync=true", false, false, Some(Durability::Process)),
            ("db=a&precision=ms&no_sync=true&durability=memory", false, false, Some(Durability::Memory)),
        ] {
            let (wanted, _) = asked(query).unwrap();
            let found = (wanted.guess, wanted.options.whole, wanted.options.durability);
            assert_eq!(found, (guess, whole, durability), "{query}");
        }
        for query in ["", "db=a&precision=days", "db=a&accept_partial=maybe", "db=a&no_sync=1"] {
            assert_eq!(asked(query).unwrap_err().status.as_u16(), 400, "{query}");
        }
    }
}
