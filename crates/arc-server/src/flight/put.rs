//! What clients send in streams: values for a prepared statement, changes, and rows.

use std::sync::Arc;

use arc_core::Statement;
use arrow_flight::{
    FlightData, PutResult,
    sql::{Command, CommandPreparedStatementQuery, DoPutPreparedStatementResult, DoPutUpdateResult},
};
use axum::body::Body;
use hyper::HeaderMap;
use prost::Message;

use super::{
    actions,
    changes::{self, Asked},
    decode,
    incoming::Incoming,
    ingest::{self, IngestTarget},
    messages::{self, Described},
    statements::Statements,
    target,
};
use crate::{
    app::App,
    auth::{Caller, Rights},
    body::Caps,
    errors::Failure,
    http::params::Params,
    write,
};

/// Most bytes of the messages with the values of one statement.
const MAX_VALUES_BYTES: usize = 1 << 20;

/// What a client sends: what it says before, and the stream.
pub(super) struct Head<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) body: Body,
}

/// Takes one stream, and returns what it is answered.
pub(super) async fn run(
    app: &Arc<App>,
    statements: &Statements,
    caller: &Caller,
    head: Head<'_>,
) -> Result<PutResult, Failure> {
    let Head { headers, body } = head;
    let caps = Caps { limit: app.limits.body_bytes, pause: app.limits.read_timeout };
    let mut incoming = Incoming::new(headers, body, caps, app.bodies.enter())?;
    let done = answer(app, statements, caller, (headers, &mut incoming)).await;
    if done.is_err() {
        incoming.pass_over().await;
    }
    done
}

async fn answer(
    app: &Arc<App>,
    statements: &Statements,
    caller: &Caller,
    (headers, incoming): (&HeaderMap, &mut Incoming),
) -> Result<PutResult, Failure> {
    let descriptor = incoming.descriptor().await?;
    let count = match messages::described(&descriptor)? {
        Described::Command(Command::CommandPreparedStatementQuery(asked)) => {
            return bind(statements, &asked, incoming).await;
        }
        Described::Command(Command::CommandPreparedStatementUpdate(asked)) => {
            let statement = statements.get(&asked.prepared_statement_handle)?;
            // Some clients send values along, others have bound them before.
            let sent = decode::bound(&values(incoming).await?)?;
            let values = sent.map_or_else(|| decode::bound(&statement.values), |sent| Ok(Some(sent)))?;
            let asked = Asked { database: statement.database, sql: statement.sql, values };
            changes::run(app, caller, asked, headers).await?
        }
        Described::Command(Command::CommandStatementUpdate(asked)) => {
            actions::no_transaction(asked.transaction_id.as_ref())?;
            let asked = Asked { database: target::database(headers)?, sql: asked.query, values: None };
            changes::run(app, caller, asked, headers).await?
        }
        Described::Command(Command::CommandStatementIngest(asked)) => {
            let target = IngestTarget::of(app, caller, asked, headers)?;
            Some(ingest::run(app, target, incoming).await?)
        }
        Described::Command(other) => {
            return Err(Failure::bad_request(format!("{} is not a command that takes a stream", other.type_url())));
        }
        Described::Path(path) => {
            let database = target::database(headers)?;
            let (database, table) = messages::table_of(&path, &database)?;
            caller.check_table(Rights::WRITE, database, table)?;
            let options = write::options(headers, &Params::default())?;
            let target = IngestTarget { database: database.to_owned(), table: table.to_owned(), options };
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
    incoming: &mut Incoming,
) -> Result<PutResult, Failure> {
    let handle = &asked.prepared_statement_handle;
    let mut statement = statements.get(handle)?;
    statement.values = values(incoming).await?;
    if Statement::parse(&statement.sql)?.kind().is_change() {
        decode::all(&statement.values)?;
    } else {
        decode::one_row(&statement.values)?;
    }
    statements.replace(handle, statement)?;
    let same = DoPutPreparedStatementResult { prepared_statement_handle: Some(handle.clone()) };
    Ok(PutResult { app_metadata: same.encode_to_vec().into() })
}

/// Returns all messages, which are the values of a statement.
async fn values(incoming: &mut Incoming) -> Result<Vec<FlightData>, Failure> {
    let (mut messages, mut bytes) = (Vec::new(), 0);
    while let Some(message) = incoming.next().await? {
        bytes += message.header.len() + message.body_bytes();
        if bytes > MAX_VALUES_BYTES {
            return Err(Failure::too_large(format!("the values take more than {MAX_VALUES_BYTES} bytes")));
        }
        messages.push(incoming.whole(message).await?);
        incoming.keep(bytes);
    }
    Ok(messages)
}
