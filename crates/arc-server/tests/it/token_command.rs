//! `arc-server token`, `config` and the help of each command: the real binary beside a real server that asks for tokens.

use std::{
    path::Path,
    process::{Command, Output},
};

use crate::process::{Running, start_closed};

/// Runs a command; returns its code, and what it said.
fn run(arguments: &[&str], token: Option<&str>) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    command.args(arguments).env_remove("ARC_TOKEN");
    if let Some(token) = token {
        command.env("ARC_TOKEN", token);
    }
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// Runs a command on tokens as the administrator, which has to succeed.
fn admin(server: &Running, data_dir: &Path, arguments: &[&str]) -> String {
    let (url, file) = (server.url(), data_dir.join("admin.token"));
    let to = ["--url", url.as_str(), "--token-file", file.to_str().unwrap()];
    let (code, out, err) = run(&[&["token"], arguments, &to[..]].concat(), None);
    assert_eq!(code, 0, "{arguments:?}: {out}{err}");
    out
}

fn last_word(text: &str) -> &str {
    text.split_whitespace().last().unwrap()
}

#[test]
fn a_token_is_made_used_rotated_and_revoked_from_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let (server, _) = start_closed(&dir.path().join("data"));
    let (data, url) = (dir.path().join("data"), server.url());
    let rights = ["--name", "telegraf", "--database", "plant*,other", "--rights", "read,write", "--expires", "30d"];
    let made = admin(&server, &data, &[&["create"], &rights[..]].concat());
    let token = last_word(&made).to_owned();
    assert!(token.starts_with("arc_2_"), "{made}");
    std::fs::write(dir.path().join("a.lp"), "pump,id=1 rpm=1i 1\npump,id=2 rpm=2i 1\n").unwrap();
    let file = dir.path().join("a.lp").to_str().unwrap().to_owned();
    let import =
        |database: &str, token: Option<&str>| run(&["import", "--url", &url, "--database", database, &file], token);
    let (code, out, err) = import("plant_7", Some(&token));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let (code, _, err) = import("elsewhere", Some(&token));
    assert!(code != 0 && err.contains("Permission denied: write required"), "{err}");
    let (code, _, err) = import("plant_7", None);
    assert!(code != 0 && err.contains("Authentication required"), "{err}");
    let listed = admin(&server, &data, &["list"]);
    let line = listed.lines().find(|line| line.contains("telegraf")).unwrap();
    assert!(line.contains("read,write in plant*,other.*") && line.ends_with("valid"), "{listed}");
    assert!(!listed.contains(last_word(&made)));
    let rotated = admin(&server, &data, &["rotate", "telegraf"]);
    let rotated = last_word(&rotated).to_owned();
    assert!(import("plant_7", Some(&token)).2.contains("Invalid or expired token"));
    assert_eq!(import("plant_7", Some(&rotated)).0, 0);
    admin(&server, &data, &["revoke", "2"]);
    assert!(import("plant_7", Some(&rotated)).2.contains("Invalid or expired token"));
    assert!(admin(&server, &data, &["list"]).contains("revoked"));
}

#[test]
fn what_cannot_be_done_with_tokens_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let (server, _) = start_closed(dir.path());
    let url = server.url();
    let file = dir.path().join("admin.token");
    let file = file.to_str().unwrap();
    admin(&server, dir.path(), &["create", "--name", "1", "--rights", "read"]);
    for (arguments, code, says) in [
        (vec!["token"], 2, "create"),
        (
            vec!["token", "revoke", "1", "--url", &url, "--token-file", file],
            1,
            "1 is the name of one token and the number of another",
        ),
        (vec!["token", "create", "--url", &url], 2, "--name"),
        (vec!["token", "list", "--url", &url], 1, "Authentication required (give --token-file, or ARC_TOKEN)"),
        (vec!["token", "list", "--url", &url, "--token-file", "/nowhere"], 2, "/nowhere"),
        (vec!["token", "list", "--url", &url.replace("http://", "https://")], 2, "does not speak TLS"),
        (vec!["token", "list", "--url", "http://127.0.0.1:1"], 2, "http://127.0.0.1:1"),
        (vec!["token", "revoke", "nobody", "--url", &url, "--token-file", file], 1, "there is no token \"nobody\""),
        (vec!["token", "revoke", "admin", "--url", &url, "--token-file", file], 1, "the last one"),
        (
            vec!["token", "create", "--name", "a", "--rights", "root", "--url", &url, "--token-file", file],
            1,
            "expected read",
        ),
    ] {
        let (found, _, err) = run(&arguments, None);
        assert_eq!(found, code, "{arguments:?}: {err}");
        assert!(err.contains(says) && !err.contains("payload"), "{says:?} is not in {err:?}");
    }
}

#[test]
fn the_settings_in_force_are_printed_with_their_sources() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    command.args(["config", "--http", "127.0.0.1:7", "--no-auth"]).env("ARC_FLUSH_AFTER", "7s");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for (key, origin) in [
        ("http = \"127.0.0.1:7\"", "# flag --http"),
        ("flush_after = \"7s\"", "# environment variable ARC_FLUSH_AFTER"),
        ("durability = \"disk\"", "# default"),
    ] {
        assert!(text.lines().any(|line| line.starts_with(key) && line.ends_with(origin)), "{key}: {text}");
    }
}

#[test]
fn each_command_shows_its_own_settings() {
    for (command, most, has, has_not) in [
        (&["import"][..], 26, "--token-file", "--max-connections"),
        (&["verify"], 8, "--data-dir", "--http"),
        (&["token", "create"], 12, "--rights", "--data-dir"),
        (&["quickstart"], 8, "--once", "--memory"),
    ] {
        let (code, help, _) = run(&[command, &["--help"]].concat(), None);
        let flags = help.lines().filter(|line| line.trim_start().starts_with("--")).count();
        assert!(code == 0 && flags <= most, "{command:?} has {flags}: {help}");
        assert!(help.contains(has) && !help.contains(has_not), "{command:?}: {help}");
    }
    let (_, help, _) = run(&["serve", "--help"], None);
    let heads = ["Where:", "Who may come in:", "Memory:", "Object store:"].map(|head| help.find(head).unwrap());
    assert!(heads.is_sorted(), "{help}");
}
