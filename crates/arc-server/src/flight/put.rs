//! What clients send in streams: values for a prepared statement, changes, and rows.

use std::{sync::Arc, time::Duration};

use arrow_flight::{
    FlightData, FlightDescriptor, PutResult,
    sql::{Command, CommandPreparedStatementQuery, DoPutPreparedStatementResult, DoPutUpdateResult},
};
use futures::StreamExt;
use hyper::StatusCode;
use prost::Message;
use tonic::{Code, Status, Streaming, metadata::MetadataMap};

use super::{
    actions,
    changes::{self, Asked},
    decode,
    ingest::{self, Target},
    messages::{self, Described},
    statements::Statements,
    target,
};
use crate::{app::App, errors::Failure, http::params::Params, write};

/// Most bytes of the messages with the values of one statement.
const MAX_VALUES_BYTES: usize = 1 << 20;

/// Takes one stream, and returns what it is answered.
pub(super) async fn run(
    app: &Arc<App>,
    statements: &Statements,
    caller: &MetadataMap,
    stream: Streaming<FlightData>,
) -> Result<PutResult, Failure> {
    let headers = caller.as_ref();
    let (descriptor, incoming) = Incoming::begin(stream, app.limits.read_timeout).await?;
    let count = match messages::described(&descriptor)? {
        Described::Command(Command::CommandPreparedStatementQuery(asked)) => {
            return bind(statements, &asked, incoming).await;
        }
        Described::Command(Command::CommandPreparedStatementUpdate(asked)) => {
            let statement = statements.get(&asked.prepared_statement_handle)?;
            // Some clients send values along, others have bound them before.
            let sent = incoming.values().await?;
            let has_values = sent.iter().any(|message| !message.data_body.is_empty());
            let values = decode::all(if has_values { &sent } else { &statement.values })?;
            changes::run(app, Asked { database: statement.database, sql: statement.sql, values }, headers).await?
        }
        Described::Command(Command::CommandStatementUpdate(asked)) => {
            actions::no_transaction(asked.transaction_id.as_ref())?;
            let asked = Asked { database: target::database(headers)?, sql: asked.query, values: Vec::new() };
            changes::run(app, asked, headers).await?
        }
        Described::Command(Command::CommandStatementIngest(asked)) => {
            let target = Target::of(app, asked, headers)?;
            Some(ingest::run(app, target, incoming).await?)
        }
        Described::Command(other) => {
            return Err(Failure::bad_request(format!("{} is not a command that takes a stream", other.type_url())));
        }
        Described::Path(path) => {
            let database = target::database(headers)?;
            let (database, table) = messages::table_of(&path, &database)?;
            let options = write::options(headers, &Params::default())?;
            let target = Target { database: database.to_owned(), table: table.to_owned(), options };
            Some(ingest::run(app, target, incoming).await?)
        }
    };
    let record_count = count.map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX));
    Ok(PutResult { app_metadata: DoPutUpdateResult { record_count }.encode_to_vec().into() })
}

/// Takes the values for the placeholders of a prepared statement.
async fn bind(
    statements: &Statements,
    asked: &CommandPreparedStatementQuery,
    incoming: Incoming,
) -> Result<PutResult, Failure> {
    let handle = &asked.prepared_statement_handle;
    let mut statement = statements.get(handle)?;
    statement.values = incoming.values().await?;
    if arc_core::is_change(&statement.sql) {
        decode::all(&statement.values)?;
    } else {
        decode::one_row(&statement.values)?;
    }
    statements.replace(handle, statement)?;
    let same = DoPutPreparedStatementResult { prepared_statement_handle: Some(handle.clone()) };
    Ok(PutResult { app_metadata: same.encode_to_vec().into() })
}

/// The messages of a client, which may stop coming.
#[derive(Debug)]
pub(super) struct Incoming {
    stream: Streaming<FlightData>,
    /// The first one, until it is taken: it has been read for its descriptor.
    first: Option<FlightData>,
    pause: Duration,
}

impl Incoming {
    /// Reads the first message, which says what all of them are for. No pause may be longer than `pause`.
    async fn begin(stream: Streaming<FlightData>, pause: Duration) -> Result<(FlightDescriptor, Self), Failure> {
        let mut incoming = Self { stream, first: None, pause };
        let mut first = incoming.next().await?.ok_or_else(|| Failure::bad_request("the stream has no messages"))?;
        let descriptor = first.flight_descriptor.take();
        incoming.first = Some(first);
        let missing = || Failure::bad_request("the first message of the stream has no descriptor");
        Ok((descriptor.ok_or_else(missing)?, incoming))
    }

    /// Returns the next message, `None` behind the last one.
    pub(super) async fn next(&mut self) -> Result<Option<FlightData>, Failure> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        match tokio::time::timeout(self.pause, self.stream.next()).await {
            Ok(message) => message.transpose().map_err(|status| broken(&status)),
            Err(_) => {
                let text = format!("no message of the stream came for {:?}", self.pause);
                Err(Failure::new(StatusCode::REQUEST_TIMEOUT, text))
            }
        }
    }

    /// Returns all messages, which are the values of a statement.
    async fn values(mut self) -> Result<Vec<FlightData>, Failure> {
        let (mut messages, mut bytes) = (Vec::new(), 0);
        while let Some(message) = self.next().await? {
            bytes += message.encoded_len();
            if bytes > MAX_VALUES_BYTES {
                return Err(Failure::too_large(format!("the values take more than {MAX_VALUES_BYTES} bytes")));
            }
            messages.push(message);
        }
        Ok(messages)
    }
}

fn broken(status: &Status) -> Failure {
    match status.code() {
        // What tonic says of a message that is larger than it may be.
        Code::OutOfRange => Failure::too_large(format!("{} (max_body_bytes)", status.message())),
        _ => Failure::bad_request(format!("the stream broke: {}", status.message())),
    }
}
