//! Statements that change data.

/// What such statements begin with; which of them can be run, the engine says.
const VERBS: [&str; 7] = ["DELETE", "DROP", "CREATE", "INSERT", "UPDATE", "ALTER", "TRUNCATE"];

/// Returns whether a statement begins as one that changes data.
pub(super) fn is_change(sql: &str) -> bool {
    let mut rest = sql.trim_start();
    loop {
        let behind = match rest.get(..2) {
            Some("--") => rest.split_once('\n'),
            Some("/*") => rest.split_once("*/"),
            _ => break,
        };
        rest = behind.map_or("", |(_, behind)| behind.trim_start());
    }
    let word = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    VERBS.iter().any(|verb| word.eq_ignore_ascii_case(verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_tells() {
        for sql in ["DELETE FROM t", " /* a */ -- b\n drop table t", "insert into t values (1)"] {
            assert!(is_change(sql), "{sql}");
        }
        for sql in ["SELECT 1", "WITH x AS (SELECT 1) SELECT * FROM x", "-- DELETE FROM t", "", "dropped", "(SELECT 1)"]
        {
            assert!(!is_change(sql), "{sql}");
        }
    }
}
