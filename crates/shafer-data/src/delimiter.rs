//! Delimiters of text.

use std::fmt;
use std::str::FromStr;

/// The delimiter between the values of a line.
///
/// ```
/// use shafer_data::Delimiter;
///
/// assert_eq!("tab".parse(), Ok(Delimiter::TAB));
/// assert_eq!(";".parse(), Ok(Delimiter::Byte(b';')));
/// assert_eq!("space".parse(), Ok(Delimiter::Spaces));
/// assert!("1".parse::<Delimiter>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// One character.
    Byte(u8),
    /// Any number of spaces and tabs.
    Spaces,
}

impl Delimiter {
    /// A comma.
    pub const COMMA: Self = Self::Byte(b',');
    /// A semicolon.
    pub const SEMICOLON: Self = Self::Byte(b';');
    /// A tab.
    pub const TAB: Self = Self::Byte(b'\t');
}

impl FromStr for Delimiter {
    type Err = String;

    /// `tab`, `space`, or an ASCII character that cannot occur in a number, a name or a comment.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.as_bytes() {
            b"space" | b" " => Ok(Self::Spaces),
            b"tab" | b"\\t" => Ok(Self::TAB),
            &[byte]
                if byte == b'\t' || byte.is_ascii_punctuation() && !b"+-._#\"".contains(&byte) =>
            {
                Ok(Self::Byte(byte))
            }
            _ => Err("give `,`, `;`, `tab`, `space` or one other character that is no part of a \
                      number"
                .to_owned()),
        }
    }
}

impl fmt::Display for Delimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Spaces => f.write_str("spaces"),
            Self::COMMA => f.write_str("commas"),
            Self::SEMICOLON => f.write_str("semicolons"),
            Self::TAB => f.write_str("tabs"),
            Self::Byte(byte) => write!(f, "`{}`", char::from(byte)),
        }
    }
}
