//! Splits text into lines and fields.

use std::io::{self, BufRead, ErrorKind, Read};

use crate::Delimiter;

/// Enough for a million classes. Bounds the memory of a row: its text, and the offsets of its fields.
const LONGEST_ROW: usize = 64 << 20;
const MOST_SEPARATORS: usize = 4 << 20;

/// Reads lines with values. Skips blank lines and comments, which begin with `#`.
pub(crate) struct Lines<R> {
    source: R,
    delimiter: Delimiter,
    /// The line terminator: `\n` (also `\r\n`) or `\r`.
    end: u8,
    text: Vec<u8>,
    /// The byte ranges of the fields in `text`.
    fields: Vec<(u32, u32)>,
    /// Counted from 1.
    number: u64,
    bytes: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R, delimiter: Delimiter, end: u8) -> Self {
        Self { source, delimiter, end, text: Vec::new(), fields: Vec::new(), number: 0, bytes: 0 }
    }

    /// Advances to the next line, if there is one.
    pub(crate) fn next(&mut self) -> io::Result<bool> {
        loop {
            self.text.clear();
            self.fields.clear();
            let room = LONGEST_ROW as u64 + 1;
            let n = (&mut self.source).take(room).read_until(self.end, &mut self.text)?;
            if n == 0 {
                return Ok(false);
            }
            if n > LONGEST_ROW {
                return invalid(format!("a row is longer than {LONGEST_ROW} bytes; is this text?"));
            }
            self.bytes += n as u64;
            self.number += 1;
            while self.text.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
                self.text.pop();
            }
            if self.text.contains(&b'\r') {
                let problem = "has a carriage return within; end every line the same way";
                return invalid(format!("line {} {problem}", self.number));
            }
            // Empty fields between tabs are missing values.
            let blank =
                |byte: &u8| *byte == b' ' || *byte == b'\t' && self.delimiter != Delimiter::TAB;
            match self.text.iter().find(|byte| !blank(byte)) {
                None | Some(b'#') => {}
                Some(_) => {
                    self.cut()?;
                    return Ok(true);
                }
            }
        }
    }

    fn cut(&mut self) -> io::Result<()> {
        if self.text.contains(&b'"') {
            return self.cut_quoted();
        }
        let mut start = 0;
        for end in 0..=self.text.len() {
            if end == self.text.len() || self.separates(self.text[end]) {
                // Consecutive spaces are one separator.
                if self.delimiter != Delimiter::Spaces || end > start {
                    self.push(start, end)?;
                }
                start = end + 1;
            }
        }
        Ok(())
    }

    /// A quoted field can contain separators, and two quotes for one.
    fn cut_quoted(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.text);
        let mut rest = line.iter().copied().peekable();
        loop {
            while rest.next_if(|&byte| byte == b' ' || self.spaces(byte)).is_some() {}
            if self.delimiter == Delimiter::Spaces && rest.peek().is_none() {
                return Ok(());
            }
            let start = self.text.len();
            if rest.next_if_eq(&b'"').is_some() {
                loop {
                    match rest.next() {
                        Some(b'"') if rest.next_if_eq(&b'"').is_none() => break,
                        Some(byte) => self.text.push(byte),
                        None => {
                            let line = self.number;
                            return invalid(format!("line {line} has a quote without an end"));
                        }
                    }
                }
            }
            while let Some(byte) = rest.next_if(|&byte| !self.separates(byte)) {
                self.text.push(byte);
            }
            self.push(start, self.text.len())?;
            if rest.next().is_none() {
                return Ok(());
            }
        }
    }

    fn separates(&self, byte: u8) -> bool {
        match self.delimiter {
            Delimiter::Byte(delimiter) => byte == delimiter,
            Delimiter::Spaces => self.spaces(byte),
        }
    }

    fn spaces(&self, byte: u8) -> bool {
        self.delimiter == Delimiter::Spaces && matches!(byte, b' ' | b'\t')
    }

    fn push(&mut self, start: usize, end: usize) -> io::Result<()> {
        if self.fields.len() > MOST_SEPARATORS {
            let separators = self.delimiter;
            return invalid(format!(
                "a row has more than {MOST_SEPARATORS} values, separated by {separators}; is this \
                 text?"
            ));
        }
        // Fits: a row is shorter than 4 GiB.
        self.fields.push((start as u32, end as u32));
        Ok(())
    }

    /// The number of fields of the line.
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field of the line, trimmed.
    pub(crate) fn field(&self, index: usize) -> &[u8] {
        let (start, end) = self.fields[index];
        self.text[start as usize..end as usize].trim_ascii()
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.field(i))
    }

    /// The number of the line, counted from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The bytes of all lines so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn invalid<T>(problem: String) -> io::Result<T> {
    Err(io::Error::new(ErrorKind::InvalidData, problem))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn cut(text: &str, delimiter: Delimiter) -> Vec<Vec<String>> {
        let mut lines = Lines::new(text.as_bytes(), delimiter, b'\n');
        let mut all = Vec::new();
        while lines.next().unwrap() {
            let text = |field: &[u8]| String::from_utf8(field.to_vec()).unwrap();
            all.push(lines.fields().map(text).collect());
        }
        all
    }

    #[test]
    fn fields_lie_between_separators() {
        use Delimiter as D;
        assert_eq!(
            cut("a, b,,c \r\n\n  \n # d\n1", D::COMMA),
            [vec!["a", "b", "", "c"], vec!["1"]]
        );
        assert_eq!(cut("\"a,\"\"b\",c\n \"d\" ,\"\"", D::COMMA), [["a,\"b", "c"], ["d", ""]]);
        assert_eq!(cut("  1 \t2   3 \n4 5 6", D::Spaces), [["1", "2", "3"], ["4", "5", "6"]]);
        assert_eq!(cut(" \"a b\"  c \n", D::Spaces), [["a b", "c"]]);
        assert_eq!(cut("a b\t\tc\n\t\t\n", D::TAB), [["a b", "", "c"], ["", "", ""]]);
        assert_eq!(cut("5\" pipe|b\n", D::Byte(b'|')), [["5\" pipe", "b"]]);
    }
}
