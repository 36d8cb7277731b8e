//! The description of the endpoints: it has every route and no other, and says where a token is asked for.

use std::collections::{BTreeMap, BTreeSet};

use hyper::Method;
use serde_json::Value;

use crate::{auth::Closed, support::Server};

const ROUTER: &str = include_str!("../../src/http/router.rs");
const METHODS: [Method; 5] = [Method::GET, Method::PUT, Method::POST, Method::DELETE, Method::PATCH];

/// One endpoint that is described.
struct Operation {
    path: String,
    method: Method,
    described: Value,
}

async fn document() -> Value {
    let reply = Closed::new().server.get("/api/openapi.json").await;
    assert_eq!((reply.status.as_u16(), reply.header("content-type")), (200, "application/json"));
    reply.json()
}

/// Returns all endpoints; some paths share what describes them.
fn operations(document: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let item = item["$ref"].as_str().map_or(item, |shared| document.pointer(&shared[1..]).unwrap());
        for method in METHODS {
            if let Some(described) = item.get(method.as_str().to_ascii_lowercase()) {
                operations.push(Operation { path: path.clone(), method, described: described.clone() });
            }
        }
    }
    operations
}

/// Returns an address of a path: each name in braces is an address's part as it is.
fn address(path: &str) -> String {
    path.replace(['{', '}'], "")
}

/// Collects what is referred to.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get("$ref").and_then(Value::as_str).map(str::to_owned));
            object.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_route_is_described_and_nothing_else() {
    let path = |rest: &'static str| rest.trim_start().strip_prefix('"').unwrap().split('"').next().unwrap();
    let routes: BTreeSet<&str> = ROUTER.split(".route(").skip(1).map(path).collect();
    let document = document().await;
    let described: BTreeSet<&str> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    assert!(routes.len() > 50, "{routes:?}");
    assert_eq!(described, routes);
}

#[tokio::test]
async fn each_path_takes_the_methods_that_are_described() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::with(|config| config.backup_dir = Some(dir.path().to_owned()));
    let mut described: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for operation in operations(&document().await) {
        described.entry(operation.path).or_default().insert(operation.method.to_string());
    }
    for (path, methods) in described {
        let reply = server.send(Method::TRACE, &address(&path), &[], "").await;
        assert_eq!(reply.status, 405, "{path}: {reply:?}");
        let allowed = reply.header("allow").split(',').map(str::trim).filter(|method| *method != "HEAD");
        assert_eq!(allowed.map(str::to_owned).collect::<BTreeSet<_>>(), methods, "{path}");
    }
}

#[tokio::test]
async fn a_token_is_asked_for_where_it_says_so() {
    let Closed { server, .. } = Closed::new();
    let document = document().await;
    assert!(document["security"].as_array().unwrap().len() > 1);
    for Operation { path, method, described } in operations(&document) {
        let reply = server.send(method.clone(), &address(&path), &[], "{}").await;
        let is_open = described.get("security").is_some_and(|security| security.as_array().unwrap().is_empty());
        assert_eq!(reply.status != 401, is_open, "{method} {path}: {reply:?}");
        assert!(described["responses"].get(reply.status.as_str()).is_some(), "{method} {path}: {reply:?}");
    }
    assert!(server.engine.databases().is_empty());
}

#[tokio::test]
async fn what_it_refers_to_is_there_and_used() {
    let document = document().await;
    let mut used = BTreeSet::new();
    references(&document, &mut used);
    for (kind, components) in document["components"].as_object().unwrap() {
        for name in components.as_object().unwrap().keys().filter(|_| kind != "securitySchemes") {
            assert!(used.remove(&format!("#/components/{kind}/{name}")), "nothing refers to {kind}/{name}");
        }
    }
    assert_eq!(used, BTreeSet::new(), "what these refer to is missing");
    for scheme in document["security"].as_array().unwrap() {
        let name = scheme.as_object().unwrap().keys().next().unwrap();
        assert!(document["components"]["securitySchemes"].get(name).is_some(), "{name}");
    }
}

#[tokio::test]
async fn each_endpoint_has_a_name_of_its_own_and_says_what_it_does() {
    let document = document().await;
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    let tags: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    let mut names = BTreeSet::new();
    for Operation { path, method, described } in operations(&document) {
        assert!(described["summary"].is_string(), "{method} {path}");
        assert!(tags.contains(&&described["tags"][0]), "{method} {path}");
        // Older names of an endpoint share its description, which so has none.
        if let Some(name) = described["operationId"].as_str() {
            assert!(names.insert(name.to_owned()), "{name} is the name of two");
        }
    }
}
