//! `GET /api/v1/cluster`: the nodes, what each does, and how far behind the owner it is.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use hyper::StatusCode;
use serde_json::{Value, json};

use super::{Cluster, members::Member, report::NodeReport};
use crate::{
    app::App,
    auth::Caller,
    errors::{Failure, json_response},
};

/// `GET /api/v1/cluster`.
pub(crate) async fn status(State(app): State<Arc<App>>, _caller: Caller) -> Result<Response, Failure> {
    let Some(cluster) = &app.cluster else {
        let alone = json!({ "success": true, "role": "all", "owner": Value::Null, "nodes": [] });
        return Ok(json_response(StatusCode::OK, alone.to_string()));
    };
    Ok(json_response(StatusCode::OK, cluster.describe(&app)?.to_string()))
}

impl Cluster {
    fn describe(&self, app: &App) -> Result<Value, Failure> {
        let own = self.report(app)?;
        let others = self.members.all();
        let owner = if own.owns {
            Some(own.clone())
        } else {
            let owner = self.members.owner(None);
            others
                .iter()
                .find(|member| owner.as_ref().is_some_and(|owner| owner.name == member.peer.name))
                .and_then(|member| member.report.clone())
        };
        let mut nodes = vec![of_report(&own, owner.as_ref(), None)];
        nodes.extend(others.iter().map(|member| of_member(member, owner.as_ref())));
        Ok(json!({
            "success": true,
            "node": self.name,
            "role": self.role.name(),
            "owner": owner.map(|owner| owner.name),
            "nodes": nodes,
        }))
    }
}

fn of_member(member: &Member, owner: Option<&NodeReport>) -> Value {
    let mut node = match &member.report {
        Some(report) => of_report(report, owner, Some(&member.peer.url)),
        None => json!({ "name": member.peer.name, "url": member.peer.url, "status": "unknown" }),
    };
    if let (Some(node), Some(failure)) = (node.as_object_mut(), &member.failure) {
        node.insert("status".to_owned(), "unreachable".into());
        node.insert("error".to_owned(), failure.as_str().into());
        let silent = member.answered.map(|answered| answered.elapsed().as_secs());
        node.insert("silent_seconds".to_owned(), silent.into());
    }
    node
}

fn of_report(report: &NodeReport, owner: Option<&NodeReport>, url: Option<&str>) -> Value {
    let behind = |of: fn(&NodeReport) -> u64| owner.map(|owner| of(owner).saturating_sub(of(report)));
    json!({
        "name": report.name,
        "role": report.role,
        "url": url,
        "version": report.version,
        "owner": report.owns,
        "status": if report.is_ready { "ready" } else { "not_ready" },
        // A node looks when it is asked: what it is behind now, no answer of it is.
        "commits_behind": behind(|report| report.committed),
        "frames_behind": behind(|report| report.acknowledged),
    })
}
