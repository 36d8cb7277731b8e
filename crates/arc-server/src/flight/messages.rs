//! What clients name things by: descriptors and tickets, from bytes to what is asked for and back.

use arrow::{array::RecordBatch, datatypes::Schema, ipc::writer::IpcWriteOptions};
use arrow_flight::{
    FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, IpcMessage, SchemaAsIpc, Ticket,
    flight_descriptor::DescriptorType,
    sql::{Any, Command, ProstMessageExt, TicketStatementQuery},
};
use bytes::Bytes;
use prost::Message;
use serde_json::{Map, Value};

use super::{decode, target};
use crate::{errors::Failure, query::values};

/// One statement with values for its placeholders, if it has any.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueryMessage {
    pub(super) database: String,
    pub(super) sql: String,
    pub(super) values: Option<RecordBatch>,
}

/// A statement as it stands in a ticket, so that a ticket needs nothing of the server's memory.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Handle {
    #[prost(string, tag = "1")]
    pub(super) database: String,
    #[prost(string, tag = "2")]
    pub(super) sql: String,
    /// Values for placeholders, as the client sent them.
    #[prost(message, repeated, tag = "3")]
    pub(super) values: Vec<FlightData>,
    /// Of one that has run already, and is not to run again.
    #[prost(message, optional, tag = "4")]
    pub(super) done: Option<DoneStatement>,
}

/// What a statement has done that changes data.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DoneStatement {
    /// Points that it took or wrote, where that is known.
    #[prost(uint64, optional, tag = "1")]
    pub(super) count: Option<u64>,
}

impl Handle {
    pub(super) fn new(database: String, sql: String) -> Self {
        Self { database, sql, values: Vec::new(), done: None }
    }

    /// Returns what stands for a statement that has run.
    pub(super) fn done(count: Option<u64>) -> Self {
        Self { done: Some(DoneStatement { count }), ..Self::default() }
    }

    /// Returns the ticket that brings the answer of the statement.
    pub(super) fn ticket(&self) -> Ticket {
        let query = TicketStatementQuery { statement_handle: self.encode_to_vec().into() };
        Ticket::new(query.as_any().encode_to_vec())
    }

    /// Reads the statement with its values.
    pub(super) fn query(self) -> Result<QueryMessage, Failure> {
        let values = (!self.values.is_empty()).then(|| decode::one_row(&self.values)).transpose()?;
        Ok(QueryMessage { database: self.database, sql: self.sql, values })
    }
}

/// What a descriptor stands for.
#[derive(Debug)]
pub(super) enum Described {
    Command(Command),
    /// A table, perhaps with its database in front.
    Path(Vec<String>),
}

/// Reads a descriptor.
pub(super) fn described(descriptor: &FlightDescriptor) -> Result<Described, Failure> {
    match DescriptorType::try_from(descriptor.r#type) {
        Ok(DescriptorType::Cmd) => Ok(Described::Command(command(&descriptor.cmd)?)),
        Ok(DescriptorType::Path) => Ok(Described::Path(descriptor.path.clone())),
        _ => Err(Failure::bad_request("a descriptor is a command of Flight SQL, or the path of a table")),
    }
}

/// Reads a command of Flight SQL.
pub(super) fn command(bytes: &[u8]) -> Result<Command, Failure> {
    let unknown = || Failure::bad_request("the bytes are no command of Flight SQL");
    let any = Any::decode(bytes).map_err(|_| unknown())?;
    match Command::try_from(any) {
        Ok(Command::Unknown(any)) => Err(Failure::bad_request(format!("{:?} is not known here", any.type_url))),
        Ok(command) => Ok(command),
        Err(error) => Err(Failure::bad_request(format!("the command cannot be read: {error}"))),
    }
}

/// What a ticket stands for.
#[derive(Debug)]
pub(super) enum Fetched {
    Query(QueryMessage),
    /// A statement that has run.
    Done(DoneStatement),
    Command(Command),
}

/// Reads a ticket: of this server, or the plain JSON of InfluxDB 3.
pub(super) fn fetched(ticket: &[u8], database: String) -> Result<Fetched, Failure> {
    if ticket.trim_ascii_start().starts_with(b"{") {
        return influx(ticket, database).map(Fetched::Query);
    }
    match command(ticket)? {
        Command::TicketStatementQuery(query) => {
            let handle = Handle::decode(query.statement_handle);
            let mut handle = handle.map_err(|_| Failure::bad_request("the ticket is not one of this server"))?;
            match handle.done.take() {
                Some(done) => Ok(Fetched::Done(done)),
                None => handle.query().map(Fetched::Query),
            }
        }
        command => Ok(Fetched::Command(command)),
    }
}

/// Reads `{"database", "sql_query", "query_type", "params"}`; the database may go by its older names.
fn influx(ticket: &[u8], database: String) -> Result<QueryMessage, Failure> {
    let values = values::of(ticket);
    let ticket: Map<String, Value> = serde_json::from_slice(ticket)
        .map_err(|error| Failure::bad_request(format!("the ticket is not valid JSON: {error}")))?;
    let text = |key: &str| match ticket.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(Failure::bad_request(format!("the key {key} of the ticket is not a string"))),
    };
    if let Some(other) = text("query_type")?.filter(|kind| !kind.eq_ignore_ascii_case("sql")) {
        return Err(Failure::bad_request(format!("the query type {other:?} is not known here; sql is")));
    }
    let sql = text("sql_query")?.ok_or_else(|| Failure::bad_request("the ticket has no sql_query"))?.to_owned();
    let mut named = None;
    for key in ["database", "namespace_name", "bucket"] {
        named = named.or(text(key)?);
    }
    let database = named.map_or(database, str::to_owned);
    Ok(QueryMessage { database, sql, values: values? })
}

/// Returns the statement that reads the table of a path.
pub(super) fn select_all(path: &[String], database: &str) -> Result<Handle, Failure> {
    let (database, table) = table_of(path, database)?;
    let sql = format!("SELECT * FROM {}", target::quoted(table));
    Ok(Handle::new(database.to_owned(), sql))
}

/// Returns the database and table of a path.
pub(super) fn table_of<'a>(path: &'a [String], database: &'a str) -> Result<(&'a str, &'a str), Failure> {
    match path {
        [table] => Ok((database, table)),
        [database, table] => Ok((database, table)),
        _ => Err(Failure::bad_request("a path is a table, or a database and a table")),
    }
}

/// Returns the answer to a descriptor: what a ticket for it will bring.
pub(super) fn info(descriptor: FlightDescriptor, schema: &Schema, ticket: Ticket) -> Result<FlightInfo, Failure> {
    let info = FlightInfo::new().try_with_schema(schema).map_err(|_| Failure::bug())?;
    Ok(info.with_endpoint(FlightEndpoint::new().with_ticket(ticket)).with_descriptor(descriptor).with_ordered(true))
}

/// Returns a schema as an encapsulated message.
pub(super) fn schema_bytes(schema: &Schema) -> Result<Bytes, Failure> {
    let options = IpcWriteOptions::default();
    let IpcMessage(bytes) = SchemaAsIpc::new(schema, &options).try_into().map_err(|_| Failure::bug())?;
    Ok(bytes)
}

/// Of the core's tests, for which it would have to be public otherwise.
#[cfg(test)]
#[path = "../../../arc-core/src/fuzzing/changed.rs"]
mod changed;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, StringArray};
    use arrow_flight::utils::batches_to_flight_data;

    use super::{changed::Random, *};

    fn read(ticket: &str) -> Result<(String, String, bool), String> {
        match fetched(ticket.as_bytes(), "default".into()) {
            Ok(Fetched::Query(query)) => Ok((query.database, query.sql, query.values.is_some())),
            Ok(other) => panic!("{other:?}"),
            Err(failure) => Err(failure.message),
        }
    }

    #[test]
    fn tickets_of_influxdb_are_json() {
        let ok = |database: &str, values| Ok((database.to_owned(), "SELECT 1".to_owned(), values));
        for (ticket, expected) in [
            (r#"{"sql_query":"SELECT 1"}"#, ok("default", false)),
            (r#"{"namespace_name":"a","sql_query":"SELECT 1","query_type":"sql"}"#, ok("a", false)),
            (r#" {"database":"b","namespace_name":"a","sql_query":"SELECT 1","query_type":"SQL"}"#, ok("b", false)),
            (r#"{"database":"b","sql_query":"SELECT 1","params":{"x":1}}"#, ok("b", true)),
            (r#"{"database":"b","sql_query":"SELECT 1","params":{}}"#, ok("b", false)),
        ] {
            assert_eq!(read(ticket), expected, "{ticket}");
        }
        for (ticket, expected) in [
            ("{", "not valid JSON"),
            (r#"{"database":"b"}"#, "no sql_query"),
            (r#"{"sql_query":1}"#, "sql_query of the ticket is not a string"),
            (r#"{"sql_query":"SELECT 1","query_type":"influxql"}"#, "\"influxql\" is not known here"),
            (r#"{"sql_query":"SELECT 1","params":1}"#, "params is neither"),
            (r#"{"sql_query":"SELECT 1","params":{"x":[1]}}"#, "params"),
            ("", "no"),
            ("SELECT 1", "no command of Flight SQL"),
        ] {
            let error = read(ticket).unwrap_err();
            assert!(error.contains(expected), "{ticket}: {error}");
        }
    }

    #[test]
    fn any_ticket_is_read_or_refused() {
        let values: Vec<(&str, ArrayRef)> = vec![
            ("1", Arc::new(Float64Array::from(vec![1.5]))),
            ("2", Arc::new(StringArray::from(vec![Some("text")]))),
        ];
        let values = RecordBatch::try_from_iter(values).unwrap();
        let values = batches_to_flight_data(&values.schema(), vec![values]).unwrap();
        let mut inputs: Vec<Vec<u8>> = [Vec::new(), values]
            .map(|values| Handle { values, ..Handle::new("d".into(), "SELECT $1, $2".into()) }.ticket().ticket.to_vec())
            .to_vec();
        inputs.push(Handle::done(Some(7)).ticket().ticket.to_vec());
        for json in
            [r#"{"database":"b","sql_query":"SELECT 1","params":{"x":[1,null,"ü"],"y":-0.5e3}}"#, r#" {"sql_query":1}"#]
        {
            inputs.push(json.as_bytes().to_vec());
        }
        let mut random = Random(42);
        for _ in 0..5_000 {
            let _ = fetched(&random.change(&inputs, 4 << 10), "d".into());
        }
    }

    #[test]
    fn a_ticket_brings_back_its_statement() {
        let handle = Handle::new("d".into(), "SELECT 1".into());
        let Fetched::Query(query) = fetched(&handle.ticket().ticket, "default".into()).unwrap() else { panic!() };
        assert_eq!(query, QueryMessage { database: "d".into(), sql: "SELECT 1".into(), values: None });
    }
}
