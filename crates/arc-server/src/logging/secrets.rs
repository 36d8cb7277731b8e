//! Texts without tokens: what clients put where no token belongs (a path, a statement, a parameter of another name) comes back
//! in answers and is told in the log.

use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;

/// How tokens begin.
const TOKEN: &str = "arc_";
/// No word of so few bytes is a token.
const WORD_BYTES: usize = 24;

/// Takes out what looks like a token.
pub(crate) fn without_tokens(text: String) -> String {
    if !text.contains(TOKEN) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(TOKEN) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        // Its number follows; names of metrics begin alike.
        let is_token = word.len() > WORD_BYTES && word.as_bytes().get(TOKEN.len()).is_some_and(u8::is_ascii_digit);
        out.push_str(before);
        out.push_str(if is_token { "arc_…" } else { word });
        rest = after;
    }
    out + rest
}

/// Writes lines to where `M` writes, without the tokens in them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Masked<M>(pub(super) M);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Masked<M> {
    type Writer = Masked<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Masked(self.0.make_writer())
    }
}

impl<W: Write> Write for Masked<W> {
    /// Takes a line whole, as the subscriber gives it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line).into_owned();
        self.0.write_all(without_tokens(text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_taken_out_and_other_words_stay() {
        let token = format!("arc_7_{}", "0123456789abcdef".repeat(4));
        let text = format!("for {token} of arc_core and arc_lineprotocol_requests_total path=/write?p={token}&db=a");
        let told = "for arc_… of arc_core and arc_lineprotocol_requests_total path=/write?p=arc_…&db=a";
        assert_eq!(without_tokens(text), told);
    }

    #[test]
    fn a_line_is_written_without_its_token() {
        let line =
            format!("2024 \u{1b}[2mstatement\u{1b}[0m=\"SELECT 'arc_7_{}'\" \u{fc}\n", "0123456789abcdef".repeat(4));
        let mut out = Masked(Vec::new());
        out.write_all(line.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(out.0).unwrap(), "2024 \u{1b}[2mstatement\u{1b}[0m=\"SELECT 'arc_…'\" \u{fc}\n");
    }
}
