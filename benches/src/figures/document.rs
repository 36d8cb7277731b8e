//! A text in which some places are written by programs.
//!
//! A place begins with the line `<!-- figures: NAME -->` and ends with `<!-- end of figures -->`.
//! Never changes a byte outside of the places.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::invalid;

const END: &str = "<!-- end of figures -->\n";

/// A Markdown file and its text.
#[derive(Debug)]
pub(super) struct Document {
    path: PathBuf,
    text: String,
}

impl Document {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), text: fs::read_to_string(path)? })
    }

    /// Writes `content` between the marks of `name`; prints it where the page has none.
    pub(super) fn replace(&mut self, name: &str, content: &str) -> io::Result<()> {
        let start = format!("<!-- figures: {name} -->\n");
        let Some((before, rest)) = self.text.split_once(&start) else {
            println!("{name}\n\n{}\n", content.trim_end());
            return Ok(());
        };
        let unended = || invalid(format!("{}: the figures {name} have no end", self.path.display()));
        let (_, after) = rest.split_once(END).ok_or_else(unended)?;
        self.text = format!("{before}{start}\n{}\n\n{END}{after}", content.trim_end());
        Ok(())
    }

    pub(super) fn save(&self) -> io::Result<()> {
        fs::write(&self.path, &self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_place_is_written_and_may_be_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        let text = "one\n<!-- figures: x -->\nold\n<!-- end of figures -->\ntwo\n<!-- figures: y -->\n<!-- end of figures -->\n";
        fs::write(&path, text).unwrap();
        let mut document = Document::open(&path).unwrap();
        document.replace("x", "new\n").unwrap();
        document.save().unwrap();
        let want = text.replace("old", "\nnew\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), want);
        document.replace("x", "new").unwrap();
        assert_eq!(document.text, want);
        document.replace("z", "not on the page").unwrap();
        assert_eq!(document.text, want);
        document.text.push_str("<!-- figures: z -->\n");
        let error = document.replace("z", "").unwrap_err().to_string();
        assert!(error.ends_with("a.md: the figures z have no end"), "{error}");
    }
}
