//! `GET /api/v1/logs`: the last lines of the log, for who may do everything.

use axum::{extract::Request, response::Response};
use hyper::StatusCode;
use serde_json::{Value, json};
use tracing::Level;

use super::recent::{Line, RECENT};
use crate::{
    auth::Caller,
    errors::{Failure, json_response},
    http::params::Params,
    timestamp,
};

/// Lines, and minutes back, if nobody says how many; and the most there may be of either.
const LIMIT: (u32, u32) = (100, 1_000);
const MINUTES: (u32, u32) = (60, 1_440);
const MINUTE_NS: i64 = 60_000_000_000;

/// `GET /api/v1/logs?limit=&level=&since_minutes=`: the newest first, those of a level and of more severe ones.
pub(crate) async fn logs(caller: Caller, request: Request) -> Result<Response, Failure> {
    caller.check_admin()?;
    let params = Params::of(request.uri())?;
    let limit = number(&params, "limit", LIMIT)?;
    let minutes = number(&params, "since_minutes", MINUTES)?;
    let name = params.get("level").unwrap_or("trace");
    let level: Level = name.parse().map_err(|_| {
        Failure::bad_request(format!("level={name} is not known; expected error, warn, info, debug or trace"))
    })?;
    let from_ns = timestamp::now_ns().saturating_sub(i64::from(minutes) * MINUTE_NS);
    let lines: Vec<Value> =
        RECENT.newest(usize::try_from(limit).unwrap_or(usize::MAX), level, from_ns).iter().map(describe).collect();
    let body = json!({
        "timestamp": timestamp::now(),
        "count": lines.len(),
        "limit": limit,
        "level_filter": params.get("level").unwrap_or_default(),
        "since_minutes": minutes,
        "logs": lines,
    });
    Ok(json_response(StatusCode::OK, body.to_string()))
}

fn describe(line: &Line) -> Value {
    json!({
        "timestamp": timestamp::format(line.time_ns),
        "level": line.level.as_str().to_ascii_lowercase(),
        "component": line.component,
        "message": line.message,
    })
}

fn number(params: &Params, name: &str, (default, most): (u32, u32)) -> Result<u32, Failure> {
    let Some(text) = params.get(name) else { return Ok(default) };
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| Failure::bad_request(format!("{name}={text}: expected a whole number, 1 to {most}")))
}
