//! Tokens: who is let in, by which words, and how tokens are made, changed and taken away.

use std::collections::BTreeSet;

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{Reply, Server};

/// A server that asks for tokens, and the one of its first start.
pub(crate) struct Closed {
    pub(crate) server: Server,
    pub(crate) admin: String,
}

impl Closed {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut arc_server::Config)) -> Self {
        let server = Server::with(|config| {
            config.no_auth = false;
            change(config);
        });
        let admin = std::fs::read_to_string(server.engine.path().join("admin.token")).unwrap().trim().to_owned();
        Self { server, admin }
    }

    /// Sends a request with a token.
    pub(crate) async fn send(&self, token: &str, method: Method, path: &str, body: &str) -> Reply {
        let bearer = format!("Bearer {token}");
        self.server.send(method, path, &[("authorization", &bearer)], body.to_owned()).await
    }

    /// Makes a token, as the first one.
    pub(crate) async fn token(&self, wanted: Value) -> String {
        let reply = self.send(&self.admin, Method::POST, "/api/v1/auth/tokens", &wanted.to_string()).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["token"].as_str().unwrap().to_owned()
    }

    async fn id(&self, name: &str) -> u64 {
        let list = self.send(&self.admin, Method::GET, "/api/v1/auth/tokens", "").await.json();
        let tokens = list["tokens"].as_array().unwrap();
        tokens.iter().find(|token| token["name"] == name).unwrap()["id"].as_u64().unwrap()
    }
}

#[tokio::test]
async fn a_server_that_was_told_nothing_lets_nobody_in() {
    let Closed { server, .. } = Closed::new();
    for (method, path) in [
        (Method::POST, "/write?db=t"),
        (Method::POST, "/api/v2/write?bucket=t"),
        (Method::POST, "/api/v3/write_lp?db=t"),
        (Method::POST, "/api/v1/write/msgpack"),
        (Method::POST, "/api/v1/query"),
        (Method::GET, "/api/v3/query_sql?db=t&q=SELECT+1"),
        (Method::GET, "/query?q=SHOW+DATABASES"),
        (Method::GET, "/api/v1/databases"),
        (Method::GET, "/api/v1/queries"),
        (Method::GET, "/api/v1/auth/tokens"),
        (Method::GET, "/metrics"),
        (Method::GET, "/api/v1/metrics/timeseries/api"),
        (Method::POST, "/api/v1/compaction/trigger"),
        (Method::GET, "/nothing"),
        (Method::DELETE, "/api/v1/databases/t?confirm=true"),
        (Method::POST, "/api/v3/configure/token/admin"),
    ] {
        let reply = server.send(method.clone(), path, &[], "m v=1").await;
        reply.is(401, "Authentication required");
        assert_eq!(reply.json()["success"], false);
        assert_eq!(reply.header("www-authenticate"), "Bearer realm=\"arc\"", "{method} {path}");
    }
    assert!(server.engine.databases().is_empty());
    for path in ["/health", "/ready", "/ping"] {
        assert!(server.get(path).await.status.is_success(), "{path}");
    }
    // Browsers ask this without what they were told to log in with.
    let named = Closed::with(|config| config.cors_origin = Some("https://console.example".to_owned()));
    let asked = [("origin", "https://console.example")];
    assert_eq!(named.server.send(Method::OPTIONS, "/api/v1/query", &asked, "").await.status, 204);
}

#[tokio::test]
async fn each_client_says_its_token_in_its_own_words() {
    let closed = Closed::new();
    let token = &closed.admin;
    let basic = |pair: String| format!("Basic {}", base64(pair.as_bytes()));
    for (name, value) in [
        ("authorization", format!("Bearer {token}")),
        ("authorization", format!("Token {token}")),
        ("authorization", token.clone()),
        ("authorization", basic(format!("telegraf:{token}"))),
        ("authorization", basic(format!("{token}:"))),
        ("x-api-key", token.clone()),
    ] {
        let reply = closed.server.send(Method::POST, "/write?db=t", &[(name, &value)], "m v=1 1").await;
        assert_eq!(reply.status, 204, "{name}: {reply:?}");
    }
    let path = format!("/write?db=t&u=telegraf&p={token}");
    assert_eq!(closed.server.post(&path, "m v=1 1").await.status, 204);
    // Whatever else is wrong with the address, the password is not repeated.
    let reply = closed.server.get(&format!("/api/v3/query_sql?db=t&p={token}&q=%zz")).await;
    assert_eq!(reply.status, 400, "{reply:?}");
    assert!(!String::from_utf8_lossy(&reply.body).contains(token.as_str()), "{reply:?}");
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = char::from(DIGITS[(word >> (18 - 6 * at) & 63) as usize]);
            text.push(if at <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

#[tokio::test]
async fn what_is_no_token_lets_nobody_in_and_is_not_repeated() {
    let closed = Closed::new();
    let (head, secret) = closed.admin.rsplit_once('_').unwrap();
    let flipped = format!("{head}_{}{}", if secret.starts_with('0') { '1' } else { '0' }, &secret[1..]);
    for wrong in [flipped.as_str(), "secret-guess", head, secret, &format!("{}0", closed.admin), "Basic !!!", "ü"] {
        let reply = closed.send(wrong, Method::GET, "/api/v1/databases", "").await;
        reply.is(401, "Invalid or expired token");
        assert!(!String::from_utf8_lossy(&reply.body).contains(wrong), "{reply:?}");
    }
    // One that is bad is not made up for by another place that has a good one.
    let both = [("authorization", "Bearer wrong"), ("x-api-key", closed.admin.as_str())];
    assert_eq!(closed.server.send(Method::GET, "/api/v1/databases", &both, "").await.status, 401);
}

#[tokio::test]
async fn nothing_of_the_body_is_read_before_the_token() {
    let Closed { server, .. } = Closed::new();
    // A body that would never end.
    let body = axum::body::Body::from_stream(futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>());
    server.send(Method::POST, "/write?db=t", &[("content-length", "1000000")], body).await.is(401, "required");
}

#[tokio::test]
async fn a_token_is_made_shown_changed_rotated_revoked_and_deleted() {
    let closed = Closed::new();
    let admin = closed.admin.as_str();
    let rights = json!({"name": "grafana", "permissions": ["read"], "databases": ["plant*"], "expires_in": "30d"});
    let token = closed.token(rights).await;
    assert!(token.starts_with("arc_") && token.len() > 64, "{token}");
    let id = closed.id("grafana").await;
    let path = format!("/api/v1/auth/tokens/{id}");
    let shown = closed.send(admin, Method::GET, &path, "").await.json()["token"].clone();
    assert_eq!((&shown["permissions"], &shown["enabled"]), (&json!(["read"]), &json!(true)));
    assert_eq!(shown["grants"][0]["databases"], json!(["plant*"]));
    assert!(shown["expires_at"].as_str().unwrap() > shown["created_at"].as_str().unwrap());
    assert!(shown["last_used_at"].is_null());
    let verified = closed.send(&token, Method::GET, "/api/v1/auth/verify", "").await.json();
    assert_eq!((&verified["valid"], &verified["permissions"]), (&json!(true), &json!(["read"])));
    assert!(closed.send(admin, Method::GET, &path, "").await.json()["token"]["last_used_at"].is_string());
    let changed = closed.send(admin, Method::PATCH, &path, &json!({"description": null}).to_string()).await;
    assert_eq!((changed.status.as_u16(), &changed.json()["token"]["description"]), (200, &Value::Null));
    let rotated = closed.send(admin, Method::POST, &format!("{path}/rotate"), "").await.json();
    let rotated = rotated["new_token"].as_str().unwrap().to_owned();
    let lets_in = async |token: &str| closed.send(token, Method::GET, "/api/v1/databases", "").await.status.as_u16();
    assert_eq!((lets_in(&token).await, lets_in(&rotated).await), (401, 200));
    assert_eq!(closed.send(admin, Method::POST, &format!("{path}/revoke"), "").await.status, 200);
    assert_eq!(lets_in(&rotated).await, 401);
    closed.send(admin, Method::PATCH, &path, "{\"enabled\": true}").await;
    assert_eq!(lets_in(&rotated).await, 200);
    assert_eq!(closed.send(admin, Method::DELETE, &path, "").await.status, 200);
    assert_eq!(lets_in(&rotated).await, 401);
    closed.send(admin, Method::DELETE, &path, "").await.is(404, "there is no token");
}

#[tokio::test]
async fn a_token_ends_at_its_time() {
    let closed = Closed::new();
    let token = closed.token(json!({"name": "short", "expires_in": "1ms"})).await;
    // Its time is over once a request has come back, or a few at the most.
    let mut status = 200;
    for _ in 0..1_000 {
        status = closed.send(&token, Method::GET, "/api/v1/databases", "").await.status.as_u16();
        if status == 401 {
            break;
        }
    }
    assert_eq!(status, 401);
    let verified = closed.send(&token, Method::GET, "/api/v1/auth/verify", "").await;
    assert_eq!((verified.status.as_u16(), verified.json()["valid"].clone()), (401, json!(false)));
}

#[tokio::test]
async fn who_is_refused_is_counted() {
    let closed = Closed::new();
    let reader = closed.token(json!({"name": "reader", "permissions": ["read"]})).await;
    for (token, path, status) in [
        ("arc_1_guess", "/api/v1/databases", 401),
        ("", "/api/v1/databases", 401),
        (&reader, "/write?db=t", 403),
        (&reader, "/api/v1/auth/tokens", 403),
        (&reader, "/api/v1/databases", 200),
    ] {
        let method = if path.starts_with("/write") { Method::POST } else { Method::GET };
        assert_eq!(closed.send(token, method, path, "m v=1").await.status, status, "{path}");
    }
    let shown = closed.send(&closed.admin, Method::GET, "/metrics", "").await;
    let text = String::from_utf8(shown.body.to_vec()).unwrap();
    for expected in ["\narc_auth_refused_total 2\n", "\narc_auth_denied_total 2\n"] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
}

#[tokio::test]
async fn tokens_are_the_business_of_who_may_everything() {
    let closed = Closed::new();
    let plant = closed.token(json!({"name": "plant", "permissions": ["admin"], "databases": ["plant"]})).await;
    let reader = closed.token(json!({"name": "reader", "permissions": ["read"]})).await;
    for token in [&plant, &reader] {
        for (method, path, body) in [
            (Method::GET, "/api/v1/auth/tokens", ""),
            (Method::POST, "/api/v1/auth/tokens", r#"{"name": "mine", "permissions": ["admin"]}"#),
            (Method::GET, "/api/v1/auth/tokens/1", ""),
            (Method::PATCH, "/api/v1/auth/tokens/1", r#"{"enabled": false}"#),
            (Method::DELETE, "/api/v1/auth/tokens/1", ""),
            (Method::POST, "/api/v1/auth/tokens/1/rotate", ""),
            (Method::POST, "/api/v1/auth/tokens/1/revoke", ""),
            (Method::GET, "/api/v1/auth/cache/stats", ""),
            (Method::POST, "/api/v3/configure/token/admin", ""),
            (Method::POST, "/api/v3/configure/token/named_admin", r#"{"token_name": "mine"}"#),
            (Method::POST, "/api/v3/configure/token", r#"{"token_name": "mine", "permissions": []}"#),
            (Method::DELETE, "/api/v3/configure/token?token_name=admin", ""),
        ] {
            closed.send(token, method, path, body).await.is(403, "Permission denied: admin required");
        }
    }
    let names = closed.send(&closed.admin, Method::GET, "/api/v1/auth/tokens", "").await.json();
    let names: BTreeSet<&str> =
        names["tokens"].as_array().unwrap().iter().map(|token| token["name"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["admin", "plant", "reader"]));
}

#[tokio::test]
async fn mistakes_about_tokens_are_named() {
    let closed = Closed::new();
    for (body, status, text) in [
        ("", 400, "Invalid request body"),
        ("[]", 400, "expected a JSON object"),
        ("{}", 400, "the key name is missing"),
        (r#"{"name": "admin"}"#, 409, "there is a token named"),
        (r#"{"name": "a", "permissions": ["root"]}"#, 400, "expected read, write, delete or admin"),
        (r#"{"name": "a", "expires_in": "tomorrow"}"#, 400, "expires_in: expected a duration"),
        (r#"{"name": "a", "databases": [""]}"#, 400, "databases: \"\" is no pattern"),
        (r#"{"name": "a", "scope": 1}"#, 400, "unknown key \"scope\""),
    ] {
        closed.send(&closed.admin, Method::POST, "/api/v1/auth/tokens", body).await.is(status, text);
    }
    let admin = closed.admin.as_str();
    closed.send(admin, Method::GET, "/api/v1/auth/tokens/99", "").await.is(404, "there is no token 99");
    closed.send(admin, Method::GET, "/api/v1/auth/tokens/x", "").await.is(400, "");
    closed.send(admin, Method::DELETE, "/api/v1/auth/tokens/1", "").await.is(409, "the last one");
    closed.send(admin, Method::POST, "/api/v1/auth/tokens/1/revoke", "").await.is(409, "the last one");
    let open = Server::new();
    open.get("/api/v1/auth/tokens").await.is(404, "started with --no-auth");
}

#[tokio::test]
async fn the_tools_of_influxdb_3_make_tokens_as_well() {
    let closed = Closed::new();
    let admin = closed.admin.as_str();
    let made = closed.send(admin, Method::POST, "/api/v3/configure/token/admin", "").await;
    assert_eq!((made.status.as_u16(), &made.json()["name"]), (201, &json!("_admin")));
    let operator = made.json()["token"].as_str().unwrap().to_owned();
    closed.send(admin, Method::POST, "/api/v3/configure/token/admin", "").await.is(409, "_admin");
    let named = json!({"token_name": "ops", "expiry_secs": 3600}).to_string();
    let made = closed.send(&operator, Method::POST, "/api/v3/configure/token/named_admin", &named).await;
    assert!(made.json()["expiry"].is_string(), "{made:?}");
    let permissions =
        json!([{"resource_type": "db", "resource_identifier": ["a", "b*"], "actions": ["read", "write"]}]);
    let scoped = json!({"token_name": "app", "permissions": permissions}).to_string();
    let made = closed.send(&operator, Method::POST, "/api/v3/enterprise/configure/token", &scoped).await.json();
    let app = made["token"].as_str().unwrap();
    assert_eq!(closed.send(app, Method::POST, "/api/v3/write_lp?db=b7", "m v=1 1000000000").await.status, 204);
    closed.send(app, Method::POST, "/api/v3/write_lp?db=c", "m v=1").await.is(403, "write required");
    for (body, text) in [
        (json!({"token_name": "x"}), "permissions is missing"),
        (json!({"permissions": []}), "token_name is missing"),
        (json!({"token_name": "x", "permissions": [{"resource_type": "system"}]}), "expected db"),
        (json!({"token_name": "x", "permissions": [{"resource_type": "db", "actions": []}]}), "resource_identifier"),
    ] {
        closed.send(admin, Method::POST, "/api/v3/configure/token", &body.to_string()).await.is(400, text);
    }
    assert_eq!(closed.send(admin, Method::DELETE, "/api/v3/configure/token?token_name=app", "").await.status, 200);
    assert_eq!(closed.send(app, Method::POST, "/api/v3/write_lp?db=b7", "m v=1").await.status, 401);
}

#[tokio::test]
async fn tokens_outlive_the_server_and_their_secrets_are_nowhere_on_disk() {
    let closed = Closed::new();
    let token = closed.token(json!({"name": "kept"})).await;
    let folder = closed.server.engine.path().to_owned();
    let secret = |token: &str| token.rsplit_once('_').unwrap().1.to_owned();
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && path.file_name().unwrap() != "admin.token" {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(&secret(&token)) && !text.contains(&secret(&closed.admin)), "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 1);
    let again = Closed { server: closed.server.reopened_with(|config| config.no_auth = false), admin: closed.admin };
    assert_eq!(again.send(&token, Method::POST, "/write?db=t", "m v=1 1").await.status, 204);
    assert_eq!(again.send(&again.admin, Method::GET, "/api/v1/auth/tokens", "").await.json()["count"], 2);
}

#[tokio::test]
async fn metrics_are_shown_to_anybody_where_the_settings_say_so() {
    let closed = Closed::with(|config| config.public_metrics = true);
    assert_eq!(closed.server.get("/metrics").await.status, 200);
    assert_eq!(closed.server.get("/api/v1/metrics").await.status, 200);
    assert_eq!(closed.server.get("/api/v1/databases").await.status, 401);
    let nothing = closed.token(json!({"name": "scraper", "permissions": []})).await;
    let plain = Closed::new();
    assert_eq!(plain.server.get("/metrics").await.status, 401);
    assert_eq!(closed.send(&nothing, Method::GET, "/metrics", "").await.status, 200);
}
