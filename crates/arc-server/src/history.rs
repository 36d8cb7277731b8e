//! What the metrics were, minute by minute, for dashboards without a database of their own.
//!
//! Kept in memory for a day, some hundred bytes a minute, and gone with the process. Never counts anything itself.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use hyper::StatusCode;
use serde_json::{Map, Value, json};

use crate::{
    app::App,
    errors::{Failure, json_response},
    http::params::Params,
    timestamp,
};

/// How often the metrics are looked at.
const EVERY: Duration = Duration::from_secs(60);
/// Minutes that are kept, and that are answered where nothing else is asked for.
const KEPT_MINUTES: u64 = 1_440;
const DEFAULT_MINUTES: u64 = 60;

/// Whose metrics are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The process.
    System,
    /// Requests and connections.
    Api,
    /// Everything else: writes, queries, buffers, the log, compaction.
    Application,
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        match name {
            "system" => Some(Self::System),
            "api" => Some(Self::Api),
            "application" => Some(Self::Application),
            _ => None,
        }
    }

    fn of(series: &str) -> Self {
        if series.starts_with("process_") || series == "arc_uptime_seconds" {
            Self::System
        } else if series.starts_with("arc_http_") {
            Self::Api
        } else {
            Self::Application
        }
    }
}

/// The metrics of one moment.
#[derive(Debug)]
struct Moment {
    time_ns: i64,
    /// In the order of the series that there are, which is always the same.
    values: Vec<(&'static str, u64)>,
}

impl Moment {
    #[expect(clippy::disallowed_methods, reason = "the time of a sample is that of the machine")]
    fn now(app: &App) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time_ns = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        Self { time_ns, values: app.metrics.values(&app.engine.stats(), app.started.elapsed()) }
    }

    fn shown(&self, kind: Kind) -> Value {
        let values = self.values.iter().filter(|(name, _)| Kind::of(name) == kind);
        let values: Map<String, Value> = values.map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        json!({ "timestamp": timestamp::format(self.time_ns), "values": values })
    }
}

/// The moments that are kept, oldest first.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<VecDeque<Moment>>);

impl History {
    fn keep(&self, moment: Moment) {
        let mut moments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        moments.push_back(moment);
        while moments.len() as u64 > KEPT_MINUTES {
            moments.pop_front();
        }
    }

    /// Returns what is kept of the last minutes, and what is now.
    fn last(&self, minutes: u64, now: &Moment, kind: Kind) -> Vec<Value> {
        let span = i64::try_from(Duration::from_secs(60 * minutes).as_nanos()).unwrap_or(i64::MAX);
        let oldest = now.time_ns.saturating_sub(span);
        let moments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = moments.iter().filter(|moment| (oldest..now.time_ns).contains(&moment.time_ns));
        kept.chain([now]).map(|moment| moment.shown(kind)).collect()
    }
}

/// Looks at the metrics from time to time, until it is dropped.
pub(crate) async fn record(app: Arc<App>) {
    let mut times = tokio::time::interval(EVERY);
    loop {
        times.tick().await;
        app.history.keep(Moment::now(&app));
    }
}

/// `GET /api/v1/metrics/timeseries/{type}?duration_minutes=`.
pub(crate) async fn timeseries(
    State(app): State<Arc<App>>,
    kind: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Failure> {
    let Path(name) = kind.map_err(|error| Failure::bad_request(error.body_text()))?;
    let unknown = || {
        let text = format!("there are no metrics of type {name:?}; there are system, application and api");
        Failure::new(StatusCode::NOT_FOUND, text)
    };
    let kind = Kind::named(&name).ok_or_else(unknown)?;
    let minutes = Params::of(request.uri())?.number("duration_minutes", 1..=KEPT_MINUTES)?.unwrap_or(DEFAULT_MINUTES);
    let now = Moment::now(&app);
    let data = app.history.last(minutes, &now, kind);
    let body = json!({
        "timestamp": timestamp::format(now.time_ns),
        "type": name,
        "duration_minutes": minutes,
        "points_count": data.len(),
        "data": data,
    });
    Ok(json_response(StatusCode::OK, body.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_NS: i64 = 60_000_000_000;

    fn moment(minute: i64) -> Moment {
        let value = u64::try_from(minute).unwrap();
        let values = vec![("arc_uptime_seconds", 60 * value), ("arc_http_requests_total", value), ("arc_wal_bytes", 7)];
        Moment { time_ns: minute * MINUTE_NS, values }
    }

    #[test]
    fn a_day_is_kept_and_as_much_of_it_shown_as_is_asked_for() {
        let history = History::default();
        (0..2_000).for_each(|minute| history.keep(moment(minute)));
        let now = moment(2_000);
        let shown = |minutes, kind| history.last(minutes, &now, kind);
        assert_eq!(shown(KEPT_MINUTES, Kind::Api).len(), 1_441);
        let last = shown(2, Kind::Api);
        let at = |minute| json!({ "timestamp": timestamp::format(minute * MINUTE_NS), "values": { "arc_http_requests_total": minute } });
        assert_eq!(last, [at(1_998), at(1_999), at(2_000)]);
        assert_eq!(shown(1, Kind::System)[1]["values"], json!({ "arc_uptime_seconds": 120_000 }));
        assert_eq!(shown(1, Kind::Application)[0]["values"], json!({ "arc_wal_bytes": 7 }));
    }
}
