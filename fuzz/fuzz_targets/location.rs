//! Arbitrary text as `file:name`, alone and in a folder with matching files.
#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use shafer_data::Location;
use shafer_fuzz::files::folder;

/// The files in the folder.
const FILES: [&str; 4] = ["a", "a:b", "a:b:c:d", "é:"];

fuzz_target!(|text: &str| {
    check(text, &[]);
    let folder = folder();
    let paths = FILES.map(|name| folder.path().join(name));
    for path in &paths {
        fs::write(path, "").unwrap();
    }
    let text = format!("{}/{text}", folder.path().display());
    check(&text, &paths.each_ref().map(|path| path.to_str().unwrap()));
});

fn check(text: &str, files: &[&str]) {
    let location = Location::parse(text);
    // Path and name contain the whole text.
    assert_eq!(location.to_string(), text);
    let Some(path) = &location.path else {
        assert!(text == "-" || text.starts_with("-:"));
        return;
    };
    let path = path.to_str().unwrap();
    assert!(!path.is_empty() || text.is_empty());
    let mut beginnings = text.match_indices(':').map(|(colon, _)| &text[..colon]).chain([text]);
    if let Some(longest) = beginnings.rfind(|beginning| files.contains(beginning)) {
        assert_eq!(path, longest);
    } else if location.name.is_some_and(|name| name.contains(['/', '\\'])) {
        assert!(Path::new(path).is_file(), "{text}");
    }
}
