//! What pages for a browser share: one look, and how values get into a template.

/// The look of all pages, in light and in dark.
const STYLE: &str = include_str!("base.css");
const DOCUMENT: &str = include_str!("document.html");

/// A page that needs nothing but itself, and may ask for nothing else.
pub(crate) struct Document<'a> {
    /// The command that makes it.
    pub(crate) command: &'a str,
    /// As text.
    pub(crate) title: &'a str,
    /// What its look has besides that of all pages.
    pub(crate) style: &'a str,
    /// Whether a script of its own may run.
    pub(crate) scripts: bool,
    /// As markup.
    pub(crate) body: &'a str,
}

impl Document<'_> {
    pub(crate) fn html(&self) -> String {
        let scripts = if self.scripts { "script-src 'unsafe-inline'; " } else { "" };
        filled(
            DOCUMENT,
            &[
                ("command", self.command),
                ("title", &escaped(self.title)),
                ("style", &[STYLE, self.style].concat()),
                ("scripts", scripts),
                ("body", self.body),
            ],
        )
    }
}

/// Puts values in the places of a template that bear their names: `{{name}}`. What is put in is not
/// looked at again, so that a file called `{{data}}` is no more than that.
pub(crate) fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        page += before;
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        page += values.iter().find(|(found, _)| *found == name).map_or("", |(_, value)| value);
        rest = after;
    }
    page + rest
}

/// Text as text: nothing in it is markup.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            // Neither XML nor HTML has a place for them.
            c if c.is_control() && !c.is_whitespace() => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_not_looked_at_again() {
        let page = filled("a{{x}}b{{y}}c", &[("x", "{{y}}"), ("y", "2")]);
        assert_eq!(page, "a{{y}}b2c");
    }

    #[test]
    fn names_are_no_markup() {
        assert_eq!(escaped(r#"<a href="x">&'"#), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
        assert_eq!(escaped("a\u{1}\tb"), "a\u{FFFD}\tb");
    }
}
