//! `GET /api/v1/logs`: the last lines of the log, for who may do everything.

use std::{path::Path, sync::Arc};

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
const LIMIT: (u64, u64) = (100, 1_000);
const MINUTES: (u64, u64) = (60, 1_440);
const MINUTE_NS: i64 = 60_000_000_000;

/// `GET /api/v1/logs?limit=&level=&since_minutes=`: the newest first, those of a level and of more severe ones.
pub(crate) async fn logs(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Failure> {
    caller.check_admin()?;
    let params = Params::of(request.uri())?;
    let number = |name, (default, most)| params.number(name, 1..=most).map(|number| number.unwrap_or(default));
    let (limit, minutes) = (number("limit", LIMIT)?, number("since_minutes", MINUTES)?);
    let name = params.get("level").unwrap_or("trace");
    let level: Level = name.parse().map_err(|_| {
        Failure::bad_request(format!("level={name} is not known; expected error, warn, info, debug or trace"))
    })?;
    let from_ns =
        timestamp::now_ns().saturating_sub(i64::try_from(minutes).unwrap_or(i64::MAX).saturating_mul(MINUTE_NS));
    let newest = RECENT.newest(usize::try_from(limit).unwrap_or(usize::MAX), level, from_ns);
    // Where the host keeps its files is nobody's business over the network.
    let folders = [Some(app.engine.path()), app.backups.as_ref().map(|backups| backups.path())];
    let folders: Vec<String> = folders.into_iter().flatten().filter_map(hidden).collect();
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

/// Returns the name of a folder as lines may have it, if it tells something of the host: a relative one is as the server was told it,
/// and may be any letter.
fn hidden(folder: &Path) -> Option<String> {
    (folder.is_absolute() && folder.parent().is_some()).then(|| folder.display().to_string())
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
        let folders = ["/srv/arc/data", "/srv/arc/backups", "d", ".", "/"];
        let folders: Vec<String> = folders.iter().map(Path::new).filter_map(hidden).collect();
        let shown = describe(&line, &folders);
        assert_eq!(shown["message"], "serving HTTP data_dir=… backup=…/a path=/write");
    }
}
