//! How long points are kept, over HTTP: a setting of a database or a measurement by its name, and policies by their number.
//!
//! A policy is a setting with a name, which can be carried out at once and remembers what that took away. While it is active
//! its days are the setting of the engine, which compaction applies; there is no second clock. What takes points away is only
//! there with `delete_enabled`, as for deletes: so is setting and removing how long they are kept. Reading is always there.

mod execute;
mod policies;
mod policy;
mod request;
mod settings;
mod store;

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use hyper::StatusCode;

pub(crate) use self::{
    policies::{create, list},
    policy::ExecutionStatus,
    store::Policies,
};
use crate::{app::App, audit::INTERNAL, auth::Caller, errors::Failure};

/// The parts of the path after `/api/v1/retention`.
pub(crate) type RetentionPath = Result<Path<Vec<String>>, PathRejection>;

/// What points a setting or a policy is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    database: String,
    /// `None` for all measurements of the database that have no setting of their own.
    measurement: Option<String>,
}

/// How long at least the server's own database is kept: nobody has the log of changes forget one sooner.
const LEAST_OF_INTERNAL: Duration = Duration::from_hours(90 * 24);

/// Checks that the points of a database may be kept for no longer than this. Before each setting, whichever door it comes by.
pub(crate) fn check_period(database: &str, period: Duration) -> Result<(), Failure> {
    if database != INTERNAL || period >= LEAST_OF_INTERNAL {
        return Ok(());
    }
    Err(Failure::new(StatusCode::FORBIDDEN, format!("the database {INTERNAL:?} is kept for 90 days at least")))
}

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Policy(u64),
    /// Something of a policy.
    Of(u64, String),
    Setting(Target),
}

/// `GET /api/v1/retention/{id}`, `/{id}/executions`, `/{database}` and `/{database}/{measurement}`.
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: RetentionPath,
    request: Request,
) -> Result<Response, Failure> {
    match place(path)? {
        Place::Policy(id) => policies::get(&app, &caller, id),
        Place::Of(id, what) if what == "executions" => policies::executions(&app, &caller, id, request.uri()),
        Place::Of(id, what) => Err(nothing(id, &what)),
        Place::Setting(target) => settings::get(&app, &caller, &target),
    }
}

/// `PUT` of a policy, with what is to be different, or of a setting.
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: RetentionPath,
    request: Request,
) -> Result<Response, Failure> {
    match place(path)? {
        Place::Policy(id) => policies::put(&app, &caller, id, request).await,
        Place::Of(id, what) => Err(nothing(id, &what)),
        Place::Setting(target) => settings::put(&app, &caller, target, request).await,
    }
}

/// `DELETE` of a policy or a setting.
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: RetentionPath,
) -> Result<Response, Failure> {
    match place(path)? {
        Place::Policy(id) => policies::delete(&app, &caller, id).await,
        Place::Of(id, what) => Err(nothing(id, &what)),
        Place::Setting(target) => settings::delete(&app, &caller, target).await,
    }
}

/// `POST /api/v1/retention/{id}/execute`.
pub(crate) async fn post(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: RetentionPath,
    request: Request,
) -> Result<Response, Failure> {
    match place(path)? {
        Place::Of(id, what) if what == "execute" => execute::execute(&app, &caller, id, request).await,
        Place::Of(id, what) => Err(nothing(id, &what)),
        Place::Policy(_) | Place::Setting(_) => {
            let text = "expected POST /api/v1/retention, or /api/v1/retention/{id}/execute with the number of a policy";
            Err(Failure::new(StatusCode::NOT_FOUND, text))
        }
    }
}

/// Reads a path. A number is a policy's, whatever databases are called: a database whose name is a number has its policies by `POST`.
fn place(path: RetentionPath) -> Result<Place, Failure> {
    let mut names = path?.0.into_iter();
    let (first, second) = (names.next().unwrap_or_default(), names.next());
    if first.is_empty() || !first.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Place::Setting(Target { database: first, measurement: second }));
    }
    let id = first.parse().map_err(|_| store::missing(&first))?;
    Ok(second.map_or(Place::Policy(id), |what| Place::Of(id, what)))
}

fn nothing(id: u64, what: &str) -> Failure {
    let what: String = what.chars().take(100).collect();
    let text = format!("there is no {what:?} of policy {id}; expected GET executions or POST execute");
    Failure::new(StatusCode::NOT_FOUND, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_policies_and_all_else_is_a_name() {
        let setting = |database: &str, measurement: Option<&str>| {
            Place::Setting(Target { database: database.into(), measurement: measurement.map(Into::into) })
        };
        for (path, expected) in [
            (&["7"][..], Place::Policy(7)),
            (&["7", "execute"], Place::Of(7, "execute".into())),
            (&["plant"], setting("plant", None)),
            (&["plant", "execute"], setting("plant", Some("execute"))),
            (&["plant", "7"], setting("plant", Some("7"))),
            (&["7a"], setting("7a", None)),
            (&["-7"], setting("-7", None)),
        ] {
            let path = path.iter().map(|part| (*part).to_owned()).collect();
            assert_eq!(place(Ok(Path(path))).unwrap(), expected);
        }
        let large = vec!["99999999999999999999999".to_owned()];
        assert_eq!(place(Ok(Path(large))).unwrap_err().status.as_u16(), 404);
    }
}
