//! The forms that an answer can have, and which one a request asks for.
//!
//! Owns their names, media types and the order in which `?format=`, `Accept` and the path are heard. Never encodes a row.

use hyper::{HeaderMap, header};

use crate::{
    errors::Failure,
    http::{
        accept::{self, Wish},
        params::Params,
    },
};

/// What an answer looks like on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One object around all rows, or for InfluxDB 3 a list of objects.
    Json,
    /// One object a line.
    Ndjson,
    Csv,
    /// A table drawn with signs, for people.
    Text,
    /// One map, column by column.
    MessagePack,
    /// An Arrow IPC stream.
    Arrow,
    Parquet,
    /// Messages of Arrow Flight.
    Flight,
}

impl Form {
    /// All of them, in the order of their counters.
    pub(crate) const ALL: [Self; 8] =
        [Self::Json, Self::Ndjson, Self::Csv, Self::Text, Self::MessagePack, Self::Arrow, Self::Parquet, Self::Flight];

    /// Returns the name in metrics, in the list of queries, and in `?format=`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Text => "text",
            Self::MessagePack => "msgpack",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
            Self::Flight => "flight",
        }
    }

    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Ndjson => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Text => "text/plain; charset=utf-8",
            Self::MessagePack => "application/msgpack",
            Self::Arrow | Self::Flight => "application/vnd.apache.arrow.stream",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// Whether it is worth while to compress the answer as a whole; the others compress their columns.
    pub(super) const fn is_compressible(self) -> bool {
        !matches!(self, Self::Arrow | Self::Parquet | Self::Flight)
    }

    /// Whether a reader notices by itself that the end is missing: an Arrow stream may end without its mark, and lines
    /// have none.
    pub(super) const fn shows_its_end(self) -> bool {
        !matches!(self, Self::Ndjson | Self::Csv | Self::Text | Self::Arrow)
    }

    /// Returns the form that a request asks for: by `?format=`, else by `Accept`, else `default`.
    pub(super) fn asked(headers: &HeaderMap, params: &Params, default: Self) -> Result<Self, Failure> {
        match params.get("format") {
            Some(name) => Self::named(name),
            None => Ok(Self::accepted(headers).unwrap_or(default)),
        }
    }

    /// Returns the form with a name of `?format=`.
    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        Ok(match name {
            "json" => Self::Json,
            "ndjson" | "jsonl" | "json_lines" => Self::Ndjson,
            "csv" => Self::Csv,
            "pretty" | "text" => Self::Text,
            "msgpack" => Self::MessagePack,
            "arrow" => Self::Arrow,
            "parquet" => Self::Parquet,
            other => {
                let expected = "json, ndjson, csv, pretty, msgpack, arrow or parquet";
                return Err(Failure::bad_request(format!("{other:?} is not a format; expected {expected}")));
            }
        })
    }

    /// Returns the form that `Accept` likes best, if it names one. What is not known is no reason to answer nothing.
    pub(crate) fn accepted(headers: &HeaderMap) -> Option<Self> {
        let wishes = accept::wishes(headers, header::ACCEPT);
        // Of equal ones the first.
        let known = wishes.iter().rev().filter_map(|wish| Some((wish.weight, Self::of_media_type(wish)?)));
        known.filter(|(weight, _)| *weight > 0).max_by_key(|(weight, _)| *weight).map(|(_, form)| form)
    }

    fn of_media_type(wish: &Wish) -> Option<Self> {
        Some(match wish.name.as_str() {
            "application/json" => Self::Json,
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" | "application/x-jsonlines" => {
                Self::Ndjson
            }
            "text/csv" => Self::Csv,
            "text/plain" => Self::Text,
            "application/msgpack" | "application/x-msgpack" | "application/vnd.msgpack" => Self::MessagePack,
            "application/vnd.apache.arrow.stream" => Self::Arrow,
            "application/vnd.apache.parquet" | "application/x-parquet" => Self::Parquet,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(accept: &str, query: &str) -> Option<Form> {
        let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]);
        Form::asked(&headers, &Params::parse(query).unwrap(), Form::Json).ok()
    }

    #[test]
    fn the_query_string_beats_the_header_beats_the_path() {
        for (accept, query, expected) in [
            ("", "", Some(Form::Json)),
            ("*/*", "", Some(Form::Json)),
            ("text/html", "", Some(Form::Json)),
            ("text/csv", "", Some(Form::Csv)),
            ("Text/CSV; charset=utf-8", "", Some(Form::Csv)),
            ("text/csv;q=0.5, application/msgpack", "", Some(Form::MessagePack)),
            ("text/csv, application/msgpack", "", Some(Form::Csv)),
            ("text/csv;q=0, */*", "", Some(Form::Json)),
            ("application/vnd.apache.arrow.stream", "format=parquet", Some(Form::Parquet)),
            ("application/vnd.apache.arrow.stream", "", Some(Form::Arrow)),
            ("", "format=jsonl", Some(Form::Ndjson)),
            ("text/csv", "format=xml", None),
        ] {
            assert_eq!(asked(accept, query), expected, "{accept} {query}");
        }
    }

    #[test]
    fn each_form_is_found_by_its_name_and_its_media_type() {
        for form in Form::ALL.into_iter().filter(|form| *form != Form::Flight) {
            assert_eq!(Form::named(form.name()).unwrap(), form);
            assert_eq!(asked(form.content_type(), ""), Some(form));
        }
    }
}
