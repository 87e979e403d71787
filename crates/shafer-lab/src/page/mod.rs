//! Pages for a browser. They share one style and need nothing but themselves. Templates are askama's, each in an `.html`
//! file beside its code.

pub(crate) mod figures;
mod table;

use anyhow::Result;
use askama::Template;

pub(crate) use self::table::{Cell, Heading, Table, is_lowest};

/// The style of all pages, in light and in dark.
const STYLE: &str = include_str!("base.css");

/// A page that loads nothing and is forbidden to.
#[derive(Template)]
#[template(path = "page/document.html")]
pub(crate) struct Document<'a> {
    /// The command that writes it.
    pub(crate) command: &'a str,
    /// Text.
    pub(crate) title: &'a str,
    /// CSS besides that of all pages.
    pub(crate) style: &'a str,
    /// Whether its scripts may run.
    pub(crate) scripts: bool,
    /// Markup.
    pub(crate) body: &'a str,
}

impl Document<'_> {
    pub(crate) fn html(&self) -> Result<String> {
        Ok(self.render()?)
    }
}

/// Escapes text for HTML, SVG and XML attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            // Neither XML nor HTML allows control characters.
            c if c.is_control() && !c.is_whitespace() => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_markup() {
        assert_eq!(escaped(r#"<a href="x">&'"#), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
        assert_eq!(escaped("a\u{1}\tb"), "a\u{FFFD}\tb");
        let page =
            Document { command: "test", title: "<b>{{x}}", style: "", scripts: false, body: "<i>" };
        let page = page.html().unwrap();
        assert!(page.contains("<title>&#60;b&#62;{{x}}</title>") && page.contains("\n<i></body>"));
        assert!(!page.contains("script-src"));
    }
}
