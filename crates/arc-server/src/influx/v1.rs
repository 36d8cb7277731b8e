//! The few things beside writing that InfluxDB 1.x clients ask for before they write: `/ping`, and `/query` with
//! `CREATE DATABASE` or `SHOW DATABASES`.
//!
//! Never answers a query for points: InfluxQL is not spoken here, and says so.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use hyper::{Method, StatusCode, header};
use serde_json::{Value, json};

use crate::{
    admin,
    app::App,
    auth::{Caller, Rights},
    body,
    errors::{Failure, json_response},
    http::params::Params,
};

/// The version that clients take for "speaks the 1.8 write API".
const INFLUXDB_VERSION: &str = "1.8.10";

/// `GET` or `POST /ping`; with `verbose=true` the version is in a body as well.
pub(crate) async fn ping(request: Request) -> Result<Response, Failure> {
    let headers = [("x-influxdb-version", INFLUXDB_VERSION), ("x-influxdb-build", "Arc")];
    if Params::of(request.uri())?.get("verbose") == Some("true") {
        let body = json!({ "version": INFLUXDB_VERSION });
        return Ok((headers, json_response(StatusCode::OK, body.to_string())).into_response());
    }
    Ok((StatusCode::NO_CONTENT, headers).into_response())
}

/// `GET` or `POST /query`, the statement in `q`.
pub(crate) async fn query(State(app): State<Arc<App>>, request: Request) -> Response {
    match answer(&app, request).await {
        Ok(result) => {
            let headers = [("x-influxdb-version", INFLUXDB_VERSION)];
            (headers, json_response(StatusCode::OK, json!({ "results": result }).to_string())).into_response()
        }
        Err(failure) => failure.into_response(),
    }
}

async fn answer(app: &Arc<App>, request: Request) -> Result<Vec<Value>, Failure> {
    let (parts, body) = request.into_parts();
    let caller = app.auth.caller(&parts.extensions)?;
    if parts.method != Method::GET && parts.method != Method::POST {
        return Err(Failure::method_not_allowed("expected GET or POST", "GET, POST"));
    }
    let mut params = Params::of(&parts.uri)?;
    let is_form = |value: &header::HeaderValue| value.as_bytes().starts_with(b"application/x-www-form-urlencoded");
    if params.get("q").is_none() && parts.headers.get(header::CONTENT_TYPE).is_some_and(is_form) {
        let body = body::read(app, body, &parts.headers).await?;
        let form = std::str::from_utf8(&body).map_err(|_| Failure::bad_request("the form is not UTF-8"))?;
        params = Params::parse(form)?;
    }
    let text = params.get("q").ok_or_else(|| Failure::bad_request("missing required parameter \"q\""))?;
    // All are understood before the first is run.
    let statements: Option<Vec<_>> = statements(text).map(Statement::parse).collect();
    let statements = statements.filter(|statements| !statements.is_empty()).ok_or_else(|| {
        Failure::bad_request("InfluxQL is limited to CREATE DATABASE and SHOW DATABASES; use SQL at /api/v1/query")
    })?;
    if parts.method == Method::GET
        && statements.iter().any(|statement| matches!(statement, Statement::CreateDatabase(_)))
    {
        return Err(Failure::method_not_allowed("GET changes nothing: send CREATE DATABASE with POST", "POST"));
    }
    let mut results = Vec::with_capacity(statements.len());
    for (id, statement) in statements.into_iter().enumerate() {
        let result = match statement {
            Statement::ShowDatabases => json!({ "statement_id": id, "series": databases(app, &caller) }),
            Statement::CreateDatabase(name) => {
                create(app, &caller, &name).await?;
                json!({ "statement_id": id })
            }
        };
        results.push(result);
    }
    Ok(results)
}

fn databases(app: &App, caller: &Caller) -> Value {
    let seen = app.engine.databases().into_iter().filter(|database| caller.sees(&database.name));
    let names: Vec<_> = seen.map(|database| [database.name]).collect();
    json!([{ "name": "databases", "columns": ["name"], "values": names }])
}

/// Creates a database; as in InfluxDB it may exist. Clients ask for that before they write to what is there.
async fn create(app: &App, caller: &Caller, name: &str) -> Result<(), Failure> {
    if caller.sees(name) && app.engine.databases().iter().any(|database| database.name == name) {
        return Ok(());
    }
    caller.check_all_of(Rights::WRITE, name)?;
    match admin::create(app, name).await {
        Err(failure) if failure.status != StatusCode::CONFLICT => Err(failure),
        _ => Ok(()),
    }
}

/// Splits statements at semicolons that are not within quotes.
fn statements(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = text.split(move |c: char| {
        let is_end = c == ';' && !is_quoted;
        if c == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    parts.filter(|part| !part.trim().is_empty())
}

/// What of InfluxQL is understood.
#[derive(Debug, PartialEq, Eq)]
enum Statement {
    ShowDatabases,
    CreateDatabase(String),
}

impl Statement {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (verb, rest) = text.split_once(char::is_whitespace)?;
        let rest = rest.trim_start();
        if verb.eq_ignore_ascii_case("show") && rest.eq_ignore_ascii_case("databases") {
            return Some(Self::ShowDatabases);
        }
        let (noun, rest) = rest.split_once(char::is_whitespace)?;
        if !verb.eq_ignore_ascii_case("create") || !noun.eq_ignore_ascii_case("database") {
            return None;
        }
        let (name, tail) = identifier(rest.trim_start())?;
        // Retention policies are given with WITH …; there are none here, so what it says has nothing to change.
        let with = tail.split_whitespace().next().is_none_or(|word| word.eq_ignore_ascii_case("with"));
        with.then_some(Self::CreateDatabase(name))
    }
}

/// Splits off a name, quoted or bare, and returns it with what follows.
fn identifier(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (name, tail) = text.split_at(end);
        let bare = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        return bare.then(|| (name.to_owned(), tail));
    };
    let mut name = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((name, quoted.get(at + 1..)?)),
            '\\' => name.push(chars.next()?.1),
            other => name.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_statements_are_understood() {
        let create = |name: &str| Some(Statement::CreateDatabase(name.to_owned()));
        for (text, expected) in [
            ("SHOW DATABASES", Some(Statement::ShowDatabases)),
            (" show  databases ", Some(Statement::ShowDatabases)),
            ("CREATE DATABASE \"telegraf\"", create("telegraf")),
            ("create database x", create("x")),
            (r#"CREATE DATABASE "a \"b\" c""#, create("a \"b\" c")),
            (r#"CREATE DATABASE "x" WITH DURATION 3d"#, create("x")),
            ("CREATE DATABASE", None),
            ("CREATE DATABASE a b", None),
            ("CREATE DATABASE \"open", None),
            ("CREATE DATABASE a;DROP DATABASE b", None),
            ("SELECT * FROM cpu", None),
            ("DROP DATABASE x", None),
            ("", None),
        ] {
            assert_eq!(Statement::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn semicolons_part_statements_but_within_quotes() {
        for (text, expected) in [
            ("SHOW DATABASES;", vec!["SHOW DATABASES"]),
            ("a; b ;;", vec!["a", " b "]),
            (r#"CREATE DATABASE "a;b"; c"#, vec![r#"CREATE DATABASE "a;b""#, " c"]),
            (r#""a\";b";c"#, vec![r#""a\";b""#, "c"]),
            (" ; ", vec![]),
        ] {
            assert_eq!(statements(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
