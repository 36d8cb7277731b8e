//! What a query request asks for: a statement, its database and values, and how the answer should look.
//!
//! Never runs anything.

use std::time::Instant;

use arc_core::WriteOptions;
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use hyper::{HeaderMap, Uri, Version};
use serde_json::Value;

use super::{
    arrow::{Ipc, Wishes},
    cells::TimeForm,
    coding::Coding,
    csv::Csv,
    encode::Encoder,
    form::Form,
    json::Json,
    lines::{Around, Nulls, Objects},
    pack::Pack,
    parquet::Parquet,
    table::Table,
    values,
};
use crate::{
    admin,
    admission::Reservation,
    app::App,
    errors::Failure,
    http::params::{self, Params},
    write,
};

/// Where the query string may name the default database.
const DATABASE: [&str; 2] = ["database", "db"];

/// Whose answers are imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Arc,
    InfluxDb3,
}

/// How an answer should look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(super) form: Form,
    pub(super) coding: Coding,
    pub(super) version: Version,
    dialect: Dialect,
    wishes: Wishes,
}

impl Shape {
    /// Returns the shape of answers in `form`, with what the headers say besides.
    pub(crate) fn new(form: Form, dialect: Dialect, headers: &HeaderMap, version: Version) -> Result<Self, Failure> {
        let coding = if form.is_compressible() { Coding::accepted(headers) } else { Coding::Identity };
        Ok(Self { form, coding, version, dialect, wishes: Wishes::of(headers)? })
    }

    /// Returns the media type of such an answer.
    pub(super) const fn content_type(self) -> &'static str {
        match (self.dialect, self.form) {
            (Dialect::InfluxDb3, Form::Ndjson) => "application/jsonl",
            (_, form) => form.content_type(),
        }
    }

    /// Begins an answer with these columns.
    pub(super) fn open(self, app: &App, schema: &SchemaRef, started: Instant) -> Result<Encoder, Failure> {
        let (times, nulls) = match self.dialect {
            Dialect::Arc => (TimeForm::Zoned, Nulls::Kept),
            Dialect::InfluxDb3 => (TimeForm::Bare, Nulls::LeftOut),
        };
        let encoder: Encoder = match (self.form, self.dialect) {
            (Form::Json, Dialect::Arc) => Box::new(Json::open(schema, started)),
            (Form::Json, Dialect::InfluxDb3) => Box::new(Objects::open(schema, Around::List, nulls, times)?),
            (Form::Ndjson, _) => Box::new(Objects::open(schema, Around::Lines, nulls, times)?),
            // Readers guess the form of a column by its first value.
            (Form::Csv, Dialect::Arc) => Box::new(Csv::open(schema, TimeForm::Padded)),
            (Form::Csv, Dialect::InfluxDb3) => Box::new(Csv::open(schema, times)),
            (Form::Text, _) => Box::new(Table::open(schema)),
            (Form::MessagePack, _) => Box::new(Pack::open(schema, &app.spools, started)),
            (Form::Arrow | Form::Flight, _) => Box::new(Ipc::open(schema, self.wishes)?),
            (Form::Parquet, _) => Box::new(Parquet::open(schema)?),
        };
        self.coding.around(encoder)
    }
}

/// A statement with its database, and values for its placeholders if it has any.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) database: String,
    pub(crate) sql: String,
    pub(crate) values: Option<RecordBatch>,
    /// How the rows are written that it may write.
    pub(crate) options: WriteOptions,
    /// Whether the request is of a method that may change something.
    pub(crate) may_change: bool,
    /// Its place among the bodies of requests, if it came in one.
    pub(crate) reservation: Option<Reservation>,
}

impl Query {
    /// Reads `{"sql": "…", "database": "…", "params": {…}}`; the header `x-arc-database` and the query string come before the key
    /// `database`, and other keys are left to whoever knows them.
    pub(super) fn read(headers: &HeaderMap, uri: &Uri, body: &[u8]) -> Result<Self, Failure> {
        if body.is_empty() {
            return Err(Failure::bad_request("Empty request body; expected {\"sql\": \"…\"}"));
        }
        let request = admin::parse(body)?;
        let sql = text(&request, "sql")?
            .ok_or_else(|| Failure::bad_request("the key sql is missing; expected {\"sql\": \"…\"}"))?;
        if sql.trim().is_empty() {
            return Err(Failure::bad_request("the key sql is empty"));
        }
        let params = Params::of(uri)?;
        let named = params::header(headers, "x-arc-database")?;
        let named = named.or_else(|| DATABASE.iter().find_map(|name| params.get(name)));
        let database = match named {
            Some(name) => name,
            None => text(&request, "database")?.filter(|name| !name.is_empty()).unwrap_or("default"),
        };
        let values = values::of(body)?;
        let options = write::durability(headers, &params)?;
        let (database, sql) = (database.to_owned(), sql.to_owned());
        Ok(Self { database, sql, values, options, may_change: true, reservation: None })
    }
}

/// Returns the text at a key of a request, if there is one.
pub(crate) fn text<'a>(request: &'a Value, key: &str) -> Result<Option<&'a str>, Failure> {
    match request.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(Failure::bad_request(format!("the key {key} is not a string"))),
    }
}
