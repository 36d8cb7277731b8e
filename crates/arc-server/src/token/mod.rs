//! `arc-server token`: tokens of a running server, made, listed and taken away.
//!
//! A client like any other: what it may do, its own token says. Ends with 0 if it is done, 1 if the server refuses, 2 if the
//! command cannot be run as it was given.

mod show;

use std::{ffi::OsString, io::Write as _, process::ExitCode};

use arc_core::{Error, ErrorKind};
use arc_edge::{ApiAnswer, ApiClient, Credentials};
use bytes::Bytes;
use clap::{Arg, ArgAction, ArgMatches, Command};
use hyper::header;
use serde_json::{Map, Value};

use crate::errors::chain;

const FAILED: u8 = 1;
const CANNOT_RUN: u8 = 2;
const LIMITS_HELP: &str =
    "Most that it may use: requests_per_second, bytes_per_second, concurrent_queries or query_memory_bytes";
const PATH: &str = "/api/v1/auth/tokens";

/// Returns the command, for the command line's definition.
pub(crate) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let list = |name, value, help| option(name, value, help).value_delimiter(',').action(ArgAction::Append);
    let url = option("url", "URL", "Server to ask").default_value("http://127.0.0.1:8000");
    let named = Arg::new("token").value_name("TOKEN").required(true).help("Name or number of the token");
    let of_server = |command: Command| command.arg(url.clone()).args(arc_edge::arguments());
    let create = Command::new("create")
        .about("Make a token; the last word that is printed is the token, which is never shown again")
        .arg(option("name", "NAME", "What it is for").required(true))
        .arg(list("database", "PATTERNS", "Databases that it is for, * for any text").default_value("*"))
        .arg(list("table", "PATTERNS", "Tables of them that it is for").default_value("*"))
        .arg(list("rights", "RIGHTS", "read, write, delete, admin").default_value("read,write"))
        .arg(option("expires", "TIME", "How long it lasts, as 24h or 30d; for ever unless given"))
        .arg(option("description", "TEXT", "More about it"))
        .arg(list("limit", "NAME=NUMBER", LIMITS_HELP));
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON instead of a table");
    Command::new("token")
        .about("Make, list, revoke and rotate the tokens of a running server")
        .subcommand_required(true)
        .subcommand(of_server(create))
        .subcommand(of_server(Command::new("list").about("List all tokens, never their texts").arg(json)))
        .subcommand(of_server(
            Command::new("revoke").about("Have a token let nobody in from now on").arg(named.clone()),
        ))
        .subcommand(of_server(
            Command::new("rotate").about("Give a token another text, which is the last word printed").arg(named),
        ))
}

/// Runs the command.
pub(crate) fn run(arguments: &ArgMatches, environment: &[(OsString, OsString)]) -> ExitCode {
    let Some((name, arguments)) = arguments.subcommand() else { return ExitCode::from(CANNOT_RUN) };
    let done = Credentials::read(arguments, environment).and_then(|credentials| {
        let url = arguments.get_one::<String>("url").map_or("", String::as_str);
        let server = TokenApi(ApiClient::connect(url, &credentials)?);
        match name {
            "create" => server.create(arguments),
            "list" => server.list(arguments.get_flag("json")),
            "revoke" => server.revoke(&named(arguments)),
            _ => server.rotate(&named(arguments)),
        }
    });
    match done {
        Ok(text) => {
            // Whoever reads may have gone; there is nobody to tell then.
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("arc-server: {}", chain(&error));
            ExitCode::from(if error.kind() == ErrorKind::Io { CANNOT_RUN } else { FAILED })
        }
    }
}

fn named(arguments: &ArgMatches) -> String {
    arguments.get_one::<String>("token").cloned().unwrap_or_default()
}

struct TokenApi(ApiClient);

impl TokenApi {
    fn create(&self, arguments: &ArgMatches) -> Result<String, Error> {
        let list = |name| arguments.get_many::<String>(name).into_iter().flatten().cloned().collect::<Vec<_>>();
        let mut request = Map::new();
        for (key, flag) in [("databases", "database"), ("tables", "table"), ("rights", "rights")] {
            request.insert(key.to_owned(), list(flag).into());
        }
        for (key, flag) in [("name", "name"), ("description", "description"), ("expires_in", "expires")] {
            if let Some(text) = arguments.get_one::<String>(flag) {
                request.insert(key.to_owned(), text.as_str().into());
            }
        }
        request.insert("limits".to_owned(), self.limits(&list("limit"))?);
        let made = self.ask("POST", PATH, &Value::Object(request))?;
        let info = made.get("token_info").unwrap_or(&Value::Null);
        let text = made.get("token").and_then(Value::as_str).unwrap_or_default();
        Ok(format!("{}\n{text}", show::sentence(info)))
    }

    /// Reads limits; which of them there are the server says.
    fn limits(&self, given: &[String]) -> Result<Value, Error> {
        let one = |text: &String| {
            let (name, number) = text.split_once('=')?;
            Some((name.to_owned(), Value::from(number.parse::<u64>().ok()?)))
        };
        let wrong = |text: &String| {
            let text = format!("--limit {text:?}: expected a name, = and a whole number, as requests_per_second=100");
            self.0.failed(ErrorKind::InvalidInput, text)
        };
        let each = given.iter().map(|text| one(text).ok_or_else(|| wrong(text)));
        Ok(Value::Object(each.collect::<Result<_, _>>()?))
    }

    fn list(&self, as_json: bool) -> Result<String, Error> {
        let listed = self.ask("GET", PATH, &Value::Null)?;
        let tokens = listed.get("tokens").cloned().unwrap_or_default();
        if as_json {
            return Ok(tokens.to_string());
        }
        Ok(show::table(tokens.as_array().map_or(&[], Vec::as_slice)))
    }

    fn revoke(&self, name: &str) -> Result<String, Error> {
        let id = self.id(name)?;
        self.ask("POST", &format!("{PATH}/{id}/revoke"), &Value::Null)?;
        Ok(format!("Token {id} lets nobody in any more"))
    }

    fn rotate(&self, name: &str) -> Result<String, Error> {
        let id = self.id(name)?;
        let rotated = self.ask("POST", &format!("{PATH}/{id}/rotate"), &Value::Null)?;
        let text = rotated.get("new_token").and_then(Value::as_str).unwrap_or_default();
        Ok(format!("Token {id} has another text; the old one lets nobody in any more\n{text}"))
    }

    /// Finds the number of a token by its name, or takes it as given.
    fn id(&self, name: &str) -> Result<u64, Error> {
        let listed = self.ask("GET", PATH, &Value::Null)?;
        let tokens = listed.get("tokens").and_then(Value::as_array).into_iter().flatten();
        let ids = tokens.filter_map(|token| Some((token.get("id")?.as_u64()?, token.get("name")?.as_str()?)));
        let meant: Vec<u64> =
            ids.filter(|(id, known)| *known == name || id.to_string() == name).map(|(id, _)| id).collect();
        let failed = |text: String| Err(self.0.failed(ErrorKind::InvalidInput, text));
        match meant.as_slice() {
            [id] => Ok(*id),
            [] => failed(format!("there is no token {name:?}")),
            _ => failed(format!("{name} is the name of one token and the number of another: rename that one first")),
        }
    }

    /// Sends a request, which has to succeed; returns what it answers.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Error> {
        let request = self.0.request(method, path).header(header::CONTENT_TYPE, "application/json");
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let answer: ApiAnswer = self.0.send(request, body)?;
        if answer.status.is_success() {
            return Ok(answer.json());
        }
        let hint = match answer.status.as_u16() {
            401 => " (give --token-file, or ARC_TOKEN)",
            _ => "",
        };
        Err(self.0.failed(ErrorKind::InvalidInput, format!("{}{hint}", answer.error())))
    }
}

/// Returns a token as a test would show it.
#[cfg(test)]
fn sample(name: &str, enabled: bool) -> Value {
    let grant = serde_json::json!({ "rights": ["read", "write"], "databases": ["plant*"], "tables": ["*"] });
    serde_json::json!({ "id": 3, "name": name, "grants": [grant], "enabled": enabled, "expires_at": null, "last_used_at": null })
}
