//! `GET /api/v1/logs`: the last lines of the log, for who may do everything.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use hyper::StatusCode;
use serde_json::{Value, json};
use tracing::Level;

use super::recent::{Line, RECENT};
use crate::{
    app::App,
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
pub(crate) async fn logs(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Failure> {
    caller.check_admin()?;
    let params = Params::of(request.uri())?;
    let limit = number(&params, "limit", LIMIT)?;
    let minutes = number(&params, "since_minutes", MINUTES)?;
    let name = params.get("level").unwrap_or("trace");
    let level: Level = name.parse().map_err(|_| {
        Failure::bad_request(format!("level={name} is not known; expected error, warn, info, debug or trace"))
    })?;
    let from_ns = timestamp::now_ns().saturating_sub(i64::from(minutes) * MINUTE_NS);
    let newest = RECENT.newest(usize::try_from(limit).unwrap_or(usize::MAX), level, from_ns);
    // Where the host keeps its files is nobody's business over the network.
    let folders = [Some(app.engine.path()), app.backups.as_ref().map(|backups| backups.path())];
    let folders: Vec<String> = folders.into_iter().flatten().map(|folder| folder.display().to_string()).collect();
    let lines: Vec<Value> = newest.iter().map(|line| describe(line, &folders)).collect();
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

/// Shows a line without the names of the server's folders.
fn describe(line: &Line, folders: &[String]) -> Value {
    let message = folders.iter().fold(line.message.clone(), |text, folder| text.replace(folder, "…"));
    json!({
        "timestamp": timestamp::format(line.time_ns),
        "level": line.level.as_str().to_ascii_lowercase(),
        "component": line.component,
        "message": message,
    })
}

fn number(params: &Params, name: &str, (default, most): (u32, u32)) -> Result<u32, Failure> {
    let Some(text) = params.get(name) else { return Ok(default) };
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| Failure::bad_request(format!("{name}={text}: expected a whole number, 1 to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_does_not_say_where_the_host_keeps_its_files() {
        let line = Line {
            time_ns: 0,
            level: Level::INFO,
            component: "arc_server::cli",
            message: "serving HTTP data_dir=/srv/arc/data backup=/srv/arc/backups/a path=/write".into(),
        };
        let shown = describe(&line, &["/srv/arc/data".into(), "/srv/arc/backups".into()]);
        assert_eq!(shown["message"], "serving HTTP data_dir=… backup=…/a path=/write");
    }
}
