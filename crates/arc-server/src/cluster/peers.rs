//! Questions to other nodes: one request each, with the secret, within a time.
//!
//! Never asks twice, and never decides what a failure means: its text says what a person can do.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ETAG, HeaderName, HeaderValue, IF_NONE_MATCH},
};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, Error, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};

use super::{
    report::{Identity, KEPT, NodeReport, REPORT, TOKEN, TOKENS},
    secret::ClusterToken,
};
use crate::{auth::OwnersTokens, config::Peer, errors::chain, kept::KeptFiles};

/// How long it may take to reach another node.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
/// How long a connection may rest before it is closed.
const IDLE: Duration = Duration::from_secs(30);
/// Most bytes of an answer that is not of a client's request.
const MAX_ANSWER_BYTES: usize = 32 << 20;

/// What sends requests to other nodes.
#[derive(Debug, Clone)]
pub(super) struct PeerClient {
    http: Client<HttpsConnector<HttpConnector>, Body>,
    identity: Identity,
    token: HeaderValue,
}

/// What another node has answered.
#[derive(Debug)]
pub(super) struct PeerAnswer {
    pub(super) status: StatusCode,
    pub(super) revision: Option<String>,
    pub(super) body: Bytes,
}

impl PeerAnswer {
    /// Returns what the other node says is wrong.
    pub(super) fn reason(&self) -> String {
        let told: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        match (self.status, told.get("error").and_then(serde_json::Value::as_str)) {
            (StatusCode::NOT_FOUND, _) => {
                "it is no node of a cluster: start it with --cluster-token-file, and the others' options".to_owned()
            }
            (_, Some(text)) => text.to_owned(),
            (status, None) => format!("it answers {status}"),
        }
    }
}

impl PeerClient {
    pub(super) fn new(identity: &Identity, token: &ClusterToken, is_encrypted: bool) -> arc_core::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_PATIENCE));
        let connector = arc_edge::connector_over(connector, &arc_edge::Credentials::default(), is_encrypted)?;
        let http = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Ok(Self { http, identity: identity.clone(), token: token.header() })
    }

    /// Sends a request, whose address is complete, and returns the head of its answer.
    pub(super) async fn send(&self, mut request: Request<Body>) -> Result<Response<Incoming>, Error> {
        let headers = request.headers_mut();
        headers.insert(TOKEN, self.token.clone());
        headers.extend(self.identity.headers());
        self.http.request(request).await
    }

    /// Asks a node a question; fails with what a person can do about it.
    pub(super) async fn ask(
        &self,
        (method, peer, path): (Method, &Peer, &str),
        headers: &[(HeaderName, HeaderValue)],
        patience: Duration,
    ) -> Result<PeerAnswer, String> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", peer.url));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::empty()).map_err(|error| chain(&error))?;
        let asked = async {
            let response = self.send(request).await.map_err(|error| chain(&error))?;
            let (parts, body) = response.into_parts();
            let body = http_body_util::Limited::new(body, MAX_ANSWER_BYTES).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            let revision = parts.headers.get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned);
            Ok(PeerAnswer { status: parts.status, revision, body })
        };
        let late = || format!("no answer within {} s", patience.as_secs_f32());
        tokio::time::timeout(patience, asked).await.map_err(|_| late())?
    }

    /// Asks a node what it is.
    pub(super) async fn report(&self, peer: &Peer, patience: Duration) -> Result<NodeReport, String> {
        let answer = self.ask((Method::GET, peer, REPORT), &[], patience).await?;
        if answer.status != StatusCode::OK {
            return Err(answer.reason());
        }
        let report: NodeReport =
            serde_json::from_slice(&answer.body).map_err(|error| format!("its answer is none of a node: {error}"))?;
        self.identity.check_report(&peer.name, &report)?;
        Ok(report)
    }

    /// Asks the owner for its small files, by name, and their revision; `None` if that is the one that is known.
    pub(super) async fn kept_files(
        &self,
        owner: &Peer,
        revision: Option<&str>,
        patience: Duration,
    ) -> Result<Option<(String, KeptFiles)>, String> {
        let known = revision.and_then(|revision| Some((IF_NONE_MATCH, HeaderValue::from_str(revision).ok()?)));
        let answer = self.ask((Method::GET, owner, KEPT), known.as_slice(), patience).await?;
        match answer.status {
            StatusCode::NOT_MODIFIED => Ok(None),
            StatusCode::OK => {
                let files = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
                Ok(Some((answer.revision.ok_or("its answer has no revision")?, files)))
            }
            _ => Err(answer.reason()),
        }
    }

    /// Asks the owner for the tokens of clients; what it has if they are others than those of `revision`.
    pub(super) async fn tokens(
        &self,
        owner: &Peer,
        revision: Option<&str>,
        patience: Duration,
    ) -> Result<OwnersTokens, String> {
        let known = revision.and_then(|revision| Some((IF_NONE_MATCH, HeaderValue::from_str(revision).ok()?)));
        let answer = self.ask((Method::GET, owner, TOKENS), known.as_slice(), patience).await?;
        match answer.status {
            StatusCode::NOT_MODIFIED => Ok(OwnersTokens::Same),
            StatusCode::NO_CONTENT => Ok(OwnersTokens::None),
            StatusCode::OK => {
                let revision = answer.revision.ok_or("its answer has no revision")?;
                Ok(OwnersTokens::Others { revision, text: answer.body })
            }
            _ => Err(answer.reason()),
        }
    }
}
