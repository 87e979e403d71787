//! Numbers in sentences.

/// A number and a noun in singular or plural: "1 row", "2 rows", "1 class", "2 classes".
pub(crate) fn counted(number: usize, thing: &str) -> String {
    let ending = match thing {
        _ if number == 1 => "",
        _ if thing.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {thing}{ending}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_thing_is_not_several() {
        assert_eq!(counted(1, "row"), "1 row");
        assert_eq!(counted(0, "row"), "0 rows");
        assert_eq!(counted(1, "class"), "1 class");
        assert_eq!(counted(12, "class"), "12 classes");
    }
}
