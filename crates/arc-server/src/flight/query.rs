//! Statements that read: what their answer will look like, and the answer as a stream of messages.
//!
//! The same slots, threads, limits and counters as over HTTP. A client that goes away ends its query; what fails later
//! ends the stream with a status, so that nobody takes a part for the whole.

use std::sync::Arc;

use arc_core::{Description, Statement};
use arrow::array::RecordBatch;
use arrow_flight::FlightData;
use futures::{StreamExt, stream};
use tonic::Status;

use super::{encode, messages::QueryMessage};
use crate::{
    app::App,
    auth::Caller,
    errors::Failure,
    query::{Form, Listed, PieceSender, Running, Ticket, layout},
};

/// A stream of messages to a client.
pub(super) type Messages = stream::BoxStream<'static, Result<FlightData, Status>>;

/// Returns the columns of an answer, as they will be sent, and the statement's placeholders.
pub(super) async fn describe(
    app: &Arc<App>,
    caller: &Caller,
    query: QueryMessage,
    keep_dictionaries: bool,
) -> Result<Description, Failure> {
    let statement = caller.statement(&query.sql)?;
    caller.check_statement(&app.engine, &query.database, &statement).await?;
    let listed = app.list_query("flight plan", caller, &query.database, &query.sql);
    let slot = app.query_slot(&listed).await?;
    let (engine, caller) = (app.engine.clone(), caller.clone());
    let mut running = app.runner.run(slot, listed, |found| async move {
        let described = engine.describe(&query.database, &statement, query.values.as_ref()).await;
        let described = described.map_err(|error| caller.failure(error))?;
        // Nobody may be there to hear it.
        let _ = found.send(Ok(described)).await;
        Ok(())
    });
    let mut described: Description = running.next().await?;
    described.columns = layout::readable(&described.columns, keep_dictionaries);
    // One value makes no dictionary, and the JDBC driver cannot send one.
    described.parameters = layout::readable(&described.parameters, false);
    Ok(described)
}

/// Runs a statement. What fails before its columns are known is returned; what fails later is in the stream.
pub(super) async fn answer(
    app: &Arc<App>,
    caller: &Caller,
    query: QueryMessage,
    keep_dictionaries: bool,
) -> Result<Messages, Failure> {
    let mut sending =
        SendingAnswer { ticket: Ticket::new(app, Form::Flight, caller.clone()), running: None, is_over: false };
    let allowed = async {
        let statement = caller.statement(&query.sql)?;
        caller.check_statement(&app.engine, &query.database, &statement).await.map(|()| statement)
    };
    let statement = allowed.await.inspect_err(|failure| sending.ticket.failed(failure))?;
    let listed = sending.ticket.list(&query.database, &query.sql);
    let slot = app.query_slot(&listed).await.inspect_err(|failure| sending.ticket.failed(failure))?;
    let work = {
        let (app, caller, listed) = (Arc::clone(app), caller.clone(), Arc::clone(&listed));
        let QueryMessage { database, values, .. } = query;
        let work = Work { app, caller, listed, database, statement, values, keep_dictionaries };
        |pieces| work.run(pieces)
    };
    sending.running = Some(app.runner.run(slot, listed, work));
    let columns = sending.next().await?;
    let rest = stream::unfold(sending, |mut sending| async move {
        let next = sending.next().await.transpose()?;
        Some((next.map_err(Status::from), sending))
    });
    Ok(stream::iter(columns.map(Ok)).chain(rest).boxed())
}

/// A statement that is to be run.
struct Work {
    app: Arc<App>,
    caller: Caller,
    listed: Arc<Listed>,
    database: String,
    statement: Statement,
    values: Option<RecordBatch>,
    keep_dictionaries: bool,
}

impl Work {
    /// Runs the statement and sends its messages, then `None`.
    async fn run(self, pieces: PieceSender<Option<FlightData>>) -> Result<(), Failure> {
        let Self { app, caller, listed, database, statement, values, keep_dictionaries } = self;
        let answer = app.engine.query(&database, &statement, values.as_ref()).await;
        let answer = answer.map_err(|error| caller.failure(error))?;
        listed.computes(&answer);
        let schema = layout::readable(&answer.schema(), keep_dictionaries);
        let counted = answer.map(move |batch| {
            let batch = batch?;
            listed.count_rows(batch.num_rows())?;
            Ok(batch)
        });
        let mut messages = Box::pin(encode::messages(counted, schema));
        while let Some(message) = messages.next().await.transpose()? {
            if pieces.send(Ok(Some(message))).await.is_err() {
                return Ok(());
            }
        }
        // Nobody may be there to hear it.
        let _ = pieces.send(Ok(None)).await;
        Ok(())
    }
}

/// An answer under way; dropping it ends its query.
struct SendingAnswer {
    ticket: Ticket,
    running: Option<Running<Option<FlightData>>>,
    is_over: bool,
}

impl SendingAnswer {
    /// Returns the next message, `None` behind the last one.
    async fn next(&mut self) -> Result<Option<FlightData>, Failure> {
        let Some(running) = self.running.as_mut().filter(|_| !self.is_over) else { return Ok(None) };
        let next = running.next().await;
        match &next {
            Ok(Some(_)) => {}
            Ok(None) => self.ticket.succeeded(),
            Err(failure) => self.ticket.failed(failure),
        }
        self.is_over = !matches!(next, Ok(Some(_)));
        next
    }
}
