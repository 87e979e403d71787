//! `--mask`: by class and by logit, in several types.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{LOGITS, complaint, folder, json, last_floats, npy, npy_of, shafer};

/// One entry per class.
const CLASSES: [u8; 4] = [0, 1, 1, 1];
/// One entry per logit: nothing masked in the first row, classes 0 and 1 in the second, class 0 in the third.
const EACH: [u8; 12] = [1, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1];

#[test]
fn masked_classes_take_no_part() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("mask.csv"), "0,1,1,1\n").unwrap();
    std::fs::write(folder.join("lines.csv"), "0\n1\n1\n1\n").unwrap();
    std::fs::write(folder.join("floats.npy"), npy(&[4], &[0.0, 1.0, 1.0, 1.0])).unwrap();
    std::fs::write(folder.join("bools.npy"), npy_of("|b1", &[1, 4], &CLASSES)).unwrap();
    std::fs::write(folder.join("u8.npy"), npy_of("|u1", &[4], &CLASSES)).unwrap();
    std::fs::write(folder.join("i8.npy"), npy_of("|i1", &[2, 2], &CLASSES)).unwrap();
    for mask in ["mask.csv", "lines.csv", "floats.npy", "bools.npy", "u8.npy", "i8.npy"] {
        let row = json(folder, &["explain", "logits.npy", "--mask", mask, "--json"]);
        // Of 1, -1 and -3 with mean -1, one class is kept.
        assert_eq!((&row["kept"], &row["classes"][0]["class"]), (&1.into(), &1.into()), "{mask}");
        let report = json(folder, &["sparsify", "logits.npy", "--mask", mask, "--json"]);
        assert_eq!(report["kept"]["largest"], 3, "{mask}");
    }
}

#[test]
fn a_mask_for_each_logit() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("mask.npy"), npy_of("|b1", &[3, 4], &EACH)).unwrap();
    let text = EACH.map(|x| x.to_string());
    let text = text.chunks(4).map(|row| row.join(",")).collect::<Vec<_>>().join("\n");
    std::fs::write(folder.join("mask.csv"), text).unwrap();
    let text = LOGITS.map(|x| x.to_string());
    let text = text.chunks(4).map(|row| row.join(",")).collect::<Vec<_>>().join("\n");
    std::fs::write(folder.join("logits.csv"), text).unwrap();
    let half = 0.5;
    let e = 1.0 / (1.0 + (-2.0_f32).exp());
    let third = 1.0 / 3.0;
    let expected = [e, 1.0 - e, 0.0, 0.0, 0.0, 0.0, half, half, 0.0, third, third, third];
    for (logits, mask) in
        [("logits.npy", "mask.npy"), ("logits.npy", "mask.csv"), ("logits.csv", "mask.npy")]
    {
        let arguments =
            ["sparsify", logits, "--mask", mask, "-o", "dense.npz", "--method", "evidential"];
        assert!(shafer(folder, &arguments).status.success());
        let report = json(folder, &["sparsify", logits, "--mask", mask, "--json"]);
        // The unmasked logits of the second and third row are equal.
        assert_eq!((&report["vacuous"], &report["kept"]["largest"]), (&2.into(), &3.into()));
        let compared = json(folder, &["compare", logits, "--mask", mask, "--json"]);
        assert_eq!(compared["methods"][0]["kept"], report["kept"]);
        assert_eq!(compared["vacuous"], report["vacuous"]);
        let row = json(folder, &["explain", logits, "--mask", mask, "--row", "1", "--json"]);
        assert_eq!((&row["kept"], &row["classes"][0]["class"]), (&2.into(), &2.into()));
    }
    let arguments = ["sparsify", "logits.npy", "--mask", "mask.npy", "-o", "dense.npy"];
    assert!(shafer(folder, &arguments).status.success());
    for (a, b) in last_floats(&folder.join("dense.npy"), 12).iter().zip(expected) {
        assert!((a - b).abs() < 1e-6, "{a} and {b}");
    }
    // Along the other axis, the mask has the layout of the logits.
    let arguments =
        ["explain", "logits.npy", "--axis", "0", "--mask", "mask.npy", "--row", "1", "--json"];
    let column = json(folder, &arguments);
    assert_eq!(column["classes"][2]["logit"], serde_json::Value::Null);
    assert_eq!(column["classes"][2]["class"], 1);
}

#[test]
fn what_is_no_mask() {
    let folder = folder();
    let folder = folder.path();
    let wrong = |file: &str, bytes: &[u8]| {
        std::fs::write(folder.join(file), bytes).unwrap();
        complaint(folder, &["sparsify", "logits.npy", "--mask", file, "-o", "out.npz"])
    };
    assert_eq!(
        wrong("a.npy", &npy_of("|b1", &[4, 3], &EACH)),
        "shafer: a.npy: the mask is (4, 3), but must have 4 values, one per class, or the shape of the \
         logits, (3, 4)"
    );
    assert!(wrong("a.csv", b"0,1\n").starts_with("shafer: a.csv: the mask is rows of (2,), but"));
    assert_eq!(
        wrong("a.csv", b"0,1,1,2\n"),
        "shafer: a.csv: the value at (0, 3) is 2; a mask has only 0 and 1"
    );
    let mut each = EACH;
    each[9] = 7;
    assert_eq!(
        wrong("a.npy", &npy_of("|u1", &[3, 4], &each)),
        "shafer: a.npy: the value at (2, 1) is 7; a mask has only 0 and 1"
    );
    assert_eq!(
        wrong("a.csv", b"0,1,1,1\n0,1,1,1\n"),
        "shafer: a.csv: has 8 values, but the array that it masks 12 or more"
    );
    assert_eq!(
        wrong("a.csv", b"0,1,1,1\n0,1,1,1\n0,1,1,1\n0,1,1,1\n"),
        "shafer: a.csv: has more values than the 12 of the array that it masks"
    );
    assert!(wrong("a.npy", &npy_of("<i8", &[1], &[0; 8])).contains("convert it to bool"));
    assert_eq!(
        wrong("a.npy", &npy_of("|b1", &[4], &[0; 4])),
        "shafer: logits.npy: row 0: every class is masked, but at least one must be left"
    );
    assert!(!folder.join("out.npz").exists());
    let message = complaint(folder, &["sparsify", "-", "--mask", "-"]);
    assert_eq!(
        message,
        "shafer: standard input (-) is used for two inputs; give one of them as a file"
    );
}
