//! The calls of the Flight service: decode, call, encode.
//!
//! They are not methods of the trait that tonic serves: it copies messages once more on their way in and out, has no account
//! of them, and the compiler proves for each method anew that all of [`App`] may go to another thread, 3.6 s each time.

use std::sync::Arc;

use arc_core::Statement;
use arrow_flight::{
    Action, FlightDescriptor, FlightInfo, HandshakeResponse, Result as ActionResult, SchemaResult, Ticket, sql::Command,
};
use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use hyper::{
    HeaderMap,
    header::{self, HeaderValue},
    http::request::Parts,
};

use super::{
    actions,
    changes::{self, Asked},
    decode,
    incoming::Incoming,
    known,
    messages::{self, Described, Fetched, Handle},
    outgoing, put,
    query::{self, Messages},
    statements::Statements,
    status::unsupported,
    target,
};
use crate::{
    app::App,
    auth::{self, Caller},
    body::Caps,
    errors::Failure,
    query::{change, layout},
};

/// The service; clones share everything.
#[derive(Debug, Clone)]
pub(super) struct Flight {
    app: Arc<App>,
    statements: Arc<Statements>,
}

impl Flight {
    pub(super) fn new(app: &Arc<App>) -> Self {
        Self { app: Arc::clone(app), statements: Arc::default() }
    }

    /// The call `DoGet`.
    pub(super) async fn get(self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        match self.fetch(&head, body).await {
            Ok(messages) => outgoing::all(messages),
            Err(failure) => outgoing::failed(failure),
        }
    }

    /// The call `DoPut`.
    pub(super) async fn put(self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let done = match self.caller(&head) {
            Ok(caller) => {
                let sent = put::Head { headers: &head.headers, body };
                put::run(&self.app, &self.statements, &caller, sent).await
            }
            Err(failure) => Err(failure),
        };
        match done {
            Ok(answer) => outgoing::one(&answer),
            Err(failure) => outgoing::failed(failure),
        }
    }

    /// Each other call, by the last part of its path.
    pub(super) async fn call(self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let answer = match head.uri.path().rsplit('/').next().unwrap_or_default() {
            "GetFlightInfo" => self.planned(&head, body, true).await.map(|info| outgoing::one(&info)),
            "GetSchema" => {
                let planned = self.planned(&head, body, false).await;
                planned.map(|FlightInfo { schema, .. }| outgoing::one(&SchemaResult { schema }))
            }
            "DoAction" => self.act(&head, body).await,
            "ListActions" => Ok(outgoing::several(actions::all())),
            "Handshake" => Ok(self.handshake(&head.headers)),
            "ListFlights" => Err(unsupported("tables are listed by the commands of Flight SQL")),
            "PollFlightInfo" => Err(unsupported("queries are not polled; GetFlightInfo answers at once")),
            "DoExchange" => Err(unsupported("DoExchange is not supported; DoGet and DoPut are")),
            other => Err(unsupported(&format!("Flight has no call {other:?}"))),
        };
        answer.unwrap_or_else(outgoing::failed)
    }

    /// Answers the token that the client was let in with, also where it had sent it as a password. Where nobody has to log in,
    /// clients that were given a password ask all the same.
    fn handshake(&self, headers: &HeaderMap) -> Response {
        let is_closed = self.app.auth.path().is_some();
        let token = auth::bearer(headers).filter(|_| is_closed).and_then(|token| token.parse().ok());
        // Clients send it back with each call, and some fail without one.
        let token = token.unwrap_or(HeaderValue::from_static("Bearer anyone"));
        ([(header::AUTHORIZATION, token)], outgoing::one(&HandshakeResponse::default())).into_response()
    }

    async fn act(&self, head: &Parts, body: Body) -> Result<Response, Failure> {
        let caller = self.caller(head)?;
        let (action, _reservation): (Action, _) = self.incoming(head, body)?.only().await?;
        let client = actions::ActionClient {
            app: &self.app,
            statements: &self.statements,
            caller: &caller,
            database: target::database(&head.headers)?,
            keep_dictionaries: layout::keeps_dictionaries(&head.headers)?,
        };
        let answer = actions::run(client, action).await?;
        Ok(outgoing::several(answer.map(|body| ActionResult { body })))
    }

    /// Returns what a descriptor stands for: the columns that it will bring, and the ticket.
    ///
    /// A statement that changes data runs here, if `runs` says so: a client that expects no rows of it may
    /// leave before it has read any, or never ask for them.
    async fn planned(&self, head: &Parts, body: Body, runs: bool) -> Result<FlightInfo, Failure> {
        let caller = self.caller(head)?;
        let (descriptor, _reservation): (FlightDescriptor, _) = self.incoming(head, body)?.only().await?;
        let (database, keep) = (target::database(&head.headers)?, layout::keeps_dictionaries(&head.headers)?);
        let statement = match messages::described(&descriptor)? {
            Described::Path(path) => messages::select_all(&path, &database)?,
            Described::Command(Command::CommandStatementQuery(asked)) => {
                actions::no_transaction(asked.transaction_id.as_ref())?;
                Handle::new(database, asked.query)
            }
            Described::Command(Command::CommandPreparedStatementQuery(asked)) => {
                self.statements.get(&asked.prepared_statement_handle)?
            }
            Described::Command(command) => {
                let ticket = Ticket::new(descriptor.cmd.clone());
                let answer = known::answer(&self.app, &caller, command).await?;
                return messages::info(descriptor, &answer.schema(), ticket);
            }
        };
        let parsed = caller.statement(&statement.sql)?;
        if parsed.kind().is_change() && runs {
            let Handle { database, sql, values, .. } = statement;
            let asked = Asked { database, sql, values: decode::bound(&values)? };
            let count = changes::run(&self.app, &caller, asked, &head.headers).await?;
            return messages::info(descriptor, &change::count_column(), Handle::done(count).ticket());
        }
        let ticket = statement.ticket();
        if parsed.kind().is_change() {
            caller.check_statement(&self.app.engine, &statement.database, &parsed).await?;
            return messages::info(descriptor, &change::count_column(), ticket);
        }
        let described = query::describe(&self.app, &caller, statement.query()?, keep).await?;
        messages::info(descriptor, &described.columns, ticket)
    }

    async fn fetch(&self, head: &Parts, body: Body) -> Result<Messages, Failure> {
        let caller = &self.caller(head)?;
        // Held until it is known what the answer looks like: many may wait that long.
        let (ticket, _reservation): (Ticket, _) = self.incoming(head, body)?.only().await?;
        let (database, keep) = (target::database(&head.headers)?, layout::keeps_dictionaries(&head.headers)?);
        let asked = match messages::fetched(&ticket.ticket, database)? {
            Fetched::Query(asked) => asked,
            Fetched::Done(done) => return Ok(known::messages(changes::answer(done.count)?)),
            Fetched::Command(Command::CommandPreparedStatementQuery(asked)) => {
                self.statements.get(&asked.prepared_statement_handle)?.query()?
            }
            Fetched::Command(command) => {
                return Ok(known::messages(known::answer(&self.app, caller, command).await?));
            }
        };
        if !Statement::parse(&asked.sql)?.kind().is_change() {
            return query::answer(&self.app, caller, asked, keep).await;
        }
        let values = asked.values.map(|values| vec![values]);
        let asked = Asked { database: asked.database, sql: asked.sql, values };
        let count = changes::run(&self.app, caller, asked, &head.headers).await?;
        Ok(known::messages(changes::answer(count)?))
    }
    fn caller(&self, head: &Parts) -> Result<Caller, Failure> {
        self.app.auth.caller(&head.extensions)
    }

    /// Takes over what is asked; [`Incoming::only`] has its limit.
    fn incoming(&self, head: &Parts, body: Body) -> Result<Incoming, Failure> {
        let caps = Caps { limit: usize::MAX, pause: self.app.limits.read_timeout };
        Incoming::new(&head.headers, body, caps, self.app.bodies.enter())
    }
}
