//! What pages for a browser share: one look, and how values get into a template.

pub(crate) mod figures;

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
        filled!(
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

/// Puts values in the places of a template that bear their names: `filled!(TEMPLATE, &[("name", value)])` for
/// `{{name}}`. A place without a value and a value without a place do not compile. What is put in is not looked at
/// again, so that a file called `{{data}}` is no more than that.
macro_rules! filled {
    ($template:expr, &[$(($name:literal, $value:expr)),* $(,)?] $(,)?) => {{
        const {
            assert!(
                $crate::page::fits($template, &[$($name),*]),
                "the names of the values are not those of the template"
            );
        }
        $crate::page::fill($template, &[$(($name, $value)),*])
    }};
}
pub(crate) use filled;

/// Whether the places of a template are these names: each has one at least, and nothing else has.
pub(crate) const fn fits(template: &str, names: &[&str]) -> bool {
    let text = template.as_bytes();
    let mut used = [false; 64];
    let mut at = 0;
    while at + 1 < text.len() {
        if text[at] != b'{' || text[at + 1] != b'{' {
            at += 1;
            continue;
        }
        at += 2;
        let mut known = false;
        let mut i = 0;
        while i < names.len() {
            if is_at(text, at, names[i].as_bytes()) {
                (known, used[i]) = (true, true);
            }
            i += 1;
        }
        if !known {
            return false;
        }
    }
    let mut i = 0;
    while i < names.len() {
        if !used[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Whether a name and the end of its place follow.
const fn is_at(text: &[u8], at: usize, name: &[u8]) -> bool {
    let end = at + name.len();
    if end + 1 >= text.len() || text[end] != b'}' || text[end + 1] != b'}' {
        return false;
    }
    let mut i = 0;
    while i < name.len() {
        if text[at + i] != name[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// What [`filled!`] does with a template that fits.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
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
        let page = filled!("a{{x}}b{{y}}c", &[("x", "{{y}}"), ("y", "2")]);
        assert_eq!(page, "a{{y}}b2c");
    }

    #[test]
    fn every_place_has_a_value_and_every_value_a_place() {
        let template = "a{{x}}b{{long}}{{x}}";
        assert!(fits(template, &["x", "long"]) && fits(template, &["long", "x"]));
        for names in [&["x"][..], &["long"], &["x", "lon"], &["x", "long", "y"], &[]] {
            assert!(!fits(template, names), "{names:?}");
        }
        assert!(fits("a{b}", &[]) && !fits("a{{x", &["x"]) && !fits("a{{x}", &["x"]));
    }

    #[test]
    fn names_are_no_markup() {
        assert_eq!(escaped(r#"<a href="x">&'"#), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
        assert_eq!(escaped("a\u{1}\tb"), "a\u{FFFD}\tb");
    }
}
