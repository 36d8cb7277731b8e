//! Writes line protocol: the inverse of a parser, with the escapes that names and strings need.

use std::{fmt::Write as _, io::Write as _};

/// Lines one after another in one buffer; its fields are kept apart until the end of the line, so
/// that they can be put in another order.
#[derive(Debug)]
pub(super) struct LineWriter {
    out: Vec<u8>,
    fields: Vec<String>,
    used: usize,
}

impl LineWriter {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes + 4096), fields: Vec::new(), used: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Begins a line.
    pub(super) fn start(&mut self, measurement: &str) {
        self.used = 0;
        escape_into(&mut self.out, measurement, b", \\");
    }

    pub(super) fn tag(&mut self, key: &str, value: &str) {
        self.out.push(b',');
        escape_into(&mut self.out, key, b",= \\");
        self.out.push(b'=');
        escape_into(&mut self.out, value, b",= \\");
    }

    pub(super) fn integer(&mut self, key: &str, value: i64) {
        let field = self.field(key);
        // Writing to a String cannot fail.
        let _ = write!(field, "{value}i");
    }

    /// Writes the fewest digits that give the same float back; 17 for a random one.
    pub(super) fn float(&mut self, key: &str, value: f64) {
        let field = self.field(key);
        let _ = write!(field, "{value}");
    }

    pub(super) fn boolean(&mut self, key: &str, value: bool) {
        let field = self.field(key);
        let _ = write!(field, "{value}");
    }

    pub(super) fn string(&mut self, key: &str, value: &str) {
        let field = self.field(key);
        field.push('"');
        for char in value.chars() {
            if matches!(char, '"' | '\\') {
                field.push('\\');
            }
            field.push(char);
        }
        field.push('"');
    }

    /// The fields of the line so far, to be put in another order.
    pub(super) fn fields_mut(&mut self) -> &mut [String] {
        self.fields.get_mut(..self.used).unwrap_or_default()
    }

    /// Ends the line.
    pub(super) fn end(&mut self, time_ns: i64) {
        for (index, field) in self.fields.iter().take(self.used).enumerate() {
            self.out.push(if index == 0 { b' ' } else { b',' });
            self.out.extend_from_slice(field.as_bytes());
        }
        // Writing to a Vec cannot fail.
        let _ = writeln!(self.out, " {time_ns}");
    }

    fn field(&mut self, key: &str) -> &mut String {
        if self.used == self.fields.len() {
            self.fields.push(String::new());
        }
        let index = self.used;
        self.used += 1;
        #[expect(clippy::indexing_slicing, reason = "pushed above where it was missing")]
        let field = &mut self.fields[index];
        field.clear();
        for char in key.chars() {
            if matches!(char, ',' | '=' | ' ' | '\\') {
                field.push('\\');
            }
            field.push(char);
        }
        field.push('=');
        field
    }
}

fn escape_into(out: &mut Vec<u8>, text: &str, special: &[u8]) {
    for byte in text.bytes() {
        if special.contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_parts_in_order_and_escaped() {
        let mut line = LineWriter::with_capacity(0);
        line.start("a b");
        line.tag("k,1", "x=y");
        line.integer("i", -5);
        line.float("f", 0.5);
        line.end(7);
        line.start("m");
        line.string("s", "say \"hi\" \\");
        line.boolean("b", true);
        line.fields_mut().reverse();
        line.end(8);
        let want = "a\\ b,k\\,1=x\\=y i=-5i,f=0.5 7\nm b=true,s=\"say \\\"hi\\\" \\\\\" 8\n";
        assert_eq!(String::from_utf8(line.into_bytes()).unwrap(), want);
    }
}
