//! What a newcomer can try next: lines for the shell, with the paths and the address of this very run.

use std::{fmt, path::Path};

use arc_core::datafile::DataFile;

/// A data file to show.
#[derive(Debug, Clone)]
pub(super) struct File {
    table: String,
    path: String,
    bytes: u64,
    rows: u64,
}

impl File {
    pub(super) fn new(table: &str, file: &DataFile) -> Self {
        Self { table: table.to_owned(), path: file.path.clone(), bytes: file.bytes, rows: file.rows }
    }
}

/// How many files are listed by name.
const LISTED: usize = 8;

/// What the hints are about. Shows as the list of files and the lines to try.
#[derive(Debug)]
pub(super) struct Hints<'a> {
    /// Address of the server.
    pub(super) url: &'a str,
    pub(super) database: &'a str,
    pub(super) files: &'a [File],
    pub(super) data_dir: &'a Path,
    /// Whether the server ends now, so that it has to be started again.
    pub(super) once: bool,
}

impl fmt::Display for Hints<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, database, files, data_dir, once } = *self;
        // The newest files are those of this run.
        for file in files.iter().rev().take(LISTED) {
            let kib = file.bytes.div_ceil(1024);
            writeln!(out, "   {} ({} rows, {kib} KiB)", data_dir.join(&file.path).display(), file.rows)?;
        }
        if files.len() > LISTED {
            writeln!(out, "   and {} more", files.len() - LISTED)?;
        }
        writeln!(out, "\n5. Try it")?;
        if once {
            writeln!(
                out,
                "   {} serve --no-auth --data-dir {}",
                quote(&program()),
                quote(&data_dir.display().to_string())
            )?;
        }
        writeln!(out, "   in a browser: {url}/#/draw?db={database}&table=cpu")?;
        let sql = "SELECT core, avg(usage) FROM cpu GROUP BY core";
        writeln!(out, "   curl -s '{url}/api/v1/query?database={database}' -d '{{\"sql\": \"{sql}\"}}'")?;
        writeln!(out, "   curl -i '{url}/write?db=home' --data-binary 'room,name=kitchen temperature=21.5'")?;
        if let Some(glob) = files.iter().find(|file| file.table == "cpu").and_then(|file| glob(&file.path)) {
            let path = data_dir.join(glob).display().to_string().replace('\'', "''");
            let sql = format!("SELECT core, avg(usage) FROM read_parquet('{path}') GROUP BY core");
            writeln!(out, "   duckdb -c {}", quote(&sql))?;
        }
        Ok(())
    }
}

/// Returns a pattern for all files of the table that `path` belongs to: its own folder is the partition.
fn glob(path: &str) -> Option<String> {
    let (partition, _) = path.rsplit_once('/')?;
    let (table, _) = partition.rsplit_once('/')?;
    Some(format!("{table}/*/*.parquet"))
}

/// Returns how to call this very program: from where it was built, it is not on the search path. Inside of Python it is.
fn program() -> String {
    let own = std::env::current_exe().ok().filter(|path| path.file_stem().is_some_and(|name| name == "arc-server"));
    let path = own.unwrap_or_else(|| "arc-server".into());
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(&path).display().to_string()
}

/// Quotes a word for a POSIX shell, if it needs it.
fn quote(word: &str) -> String {
    if word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) && !word.is_empty() {
        return word.to_owned();
    }
    if word.contains(['$', '`', '\\', '"', '!']) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    format!("\"{word}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        for (word, expected) in
            [("a b", "\"a b\""), ("read_parquet('x/*')", "\"read_parquet('x/*')\""), ("$HOME's", r"'$HOME'\''s'")]
        {
            assert_eq!(quote(word), expected);
        }
    }

    #[test]
    fn the_pattern_covers_all_partitions() {
        assert_eq!(glob("data/m/cpu/day=2026-01-31/1.parquet").as_deref(), Some("data/m/cpu/*/*.parquet"));
        assert_eq!(glob("1.parquet"), None);
    }

    #[test]
    fn every_hint_names_this_run() {
        let file = |n: u32| File {
            table: "cpu".to_owned(),
            path: format!("data/m/cpu/day=2026-01-31/{n}.parquet"),
            bytes: 1025,
            rows: 3,
        };
        let files: Vec<File> = (0..10).map(file).collect();
        let data_dir = Path::new("./d");
        let hints = Hints { url: "http://127.0.0.1:1", database: "m", files: &files, data_dir, once: true };
        let text = hints.to_string();
        for expected in [
            "./d/data/m/cpu/day=2026-01-31/9.parquet (3 rows, 2 KiB)",
            "and 2 more",
            "serve --no-auth --data-dir ./d",
            "in a browser: http://127.0.0.1:1/#/draw?db=m&table=cpu",
            "curl -s 'http://127.0.0.1:1/api/v1/query?database=m'",
            "duckdb -c \"SELECT core, avg(usage) FROM read_parquet('./d/data/m/cpu/*/*.parquet') GROUP BY core\"",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }
}
