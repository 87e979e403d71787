//! `shafer data` without network access.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{complaint, json, shafer};
use serde_json::Value;

#[test]
fn data_sets_are_found_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let missing = complaint(folder, &["data", "path", "mnist", "--data-dir", "here"]);
    let cache = folder.join("cache/shafer/mnist");
    let expected = format!(
        "shafer: mnist: not found in here/mnist or {}; run `shafer data fetch mnist`",
        cache.display()
    );
    assert_eq!(missing, expected);
    let message = complaint(folder, &["data", "verify", "--data-dir", "here", "mnist"]);
    assert_eq!(message, expected);
    let message = complaint(folder, &["data", "path", "emnist"]);
    assert!(message.starts_with("shafer: emnist: is not a known data set; known are mnist, "));

    // Empty files with the right names.
    std::fs::create_dir_all(folder.join("here/mnist")).unwrap();
    for part in ["train", "t10k"] {
        for kind in ["images-idx3-ubyte", "labels-idx1-ubyte.gz"] {
            std::fs::write(folder.join(format!("here/mnist/{part}-{kind}")), "").unwrap();
        }
    }
    let path = shafer(folder, &["data", "path", "mnist", "--data-dir", "here"]).stdout;
    assert_eq!(path, b"here/mnist\n");
    let listed = json(folder, &["data", "list", "mnist", "ethucy", "--data-dir", "here", "--json"]);
    assert_eq!(listed[0]["place"], "here/mnist");
    assert_eq!((&listed[1]["set"], &listed[1]["place"]), (&"ethucy".into(), &Value::Null));
    let text = shafer(folder, &["data", "list"]).stdout;
    assert!(String::from_utf8(text).unwrap().contains("not found; run `shafer data fetch mnist`"));

    let output = shafer(folder, &["data", "verify", "mnist", "--data-dir", "here", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let verified: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verified[0]["files"][0]["right"], false);
    let problem = verified[0]["files"][0]["problem"].as_str().unwrap();
    assert!(problem.contains("train-images-idx3-ubyte: has 0 bytes, not 47040016; "), "{problem}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "shafer: 4 files are missing or invalid; run `shafer data fetch` to replace them\n"
    );

    // No server listens there, and --mirror excludes all other sources.
    let mirror = "http://127.0.0.1:1";
    let message = complaint(folder, &["data", "fetch", "mnist", "--mirror", mirror]);
    assert!(
        message.starts_with("shafer: cannot fetch train-images-idx3-ubyte: http://127.0.0.1:1/")
    );
    assert_eq!(std::fs::read_dir(cache).unwrap().count(), 1, "only the lock");
    let message = complaint(folder, &["data", "fetch", "miniimagenet"]);
    assert!(message.contains("needs a manual download"), "{message}");
}
