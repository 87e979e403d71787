//! Damaged and hostile files of data sets: each is an error of one line, without a panic, and without memory
//! beyond the data in the file.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;

use common::{gzip, idx, png, tar};
use shafer_data::dataset::{Scene, Track, read_idx, read_png_folders, walk};

/// Checks the error for a file of images with two labels.
#[track_caller]
fn images_refused(bytes: &[u8], expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (images, labels) = (folder.path().join("images"), folder.path().join("labels"));
    fs::write(&images, bytes).unwrap();
    fs::write(&labels, idx(&[2], &[0, 1])).unwrap();
    let error = read_idx(&images, &labels).unwrap_err().to_string();
    let found =
        error.replace(images.to_str().unwrap(), "FILE").replace(labels.to_str().unwrap(), "LABELS");
    assert!(found.starts_with(expected), "found:    {found}\nexpected: {expected}");
    assert!(!found.contains('\n') && found.len() < 300, "{found}");
}

#[test]
fn idx_headers() {
    let good = idx(&[2, 1, 2], &[1, 2, 3, 4]);
    images_refused(
        b"",
        "FILE: begins with \"\", which is not the magic number of IDX; it is damaged",
    );
    images_refused(
        b"<html>",
        "FILE: begins with \"<htm\", which is not the magic number of IDX; it is damaged",
    );
    images_refused(b"\0\0", "FILE: ends within the IDX header; it is damaged");
    images_refused(&good[..15], "FILE: ends within the IDX header");
    for (kind, name) in [
        (0x09, "signed bytes (0x09)"),
        (0x0b, "16-bit integers (0x0b)"),
        (0x0c, "32-bit integers (0x0c)"),
        (0x0d, "32-bit floats (0x0d)"),
        (0x0e, "64-bit floats (0x0e)"),
        (0xff, "values of an unknown type (0xff)"),
    ] {
        let mut other = good.clone();
        other[2] = kind;
        let expected = format!("FILE: has {name}; images and labels must be unsigned bytes (0x08)");
        images_refused(&other, &expected);
    }
    images_refused(&idx(&[2], &[0, 1]), "FILE: has 1 axes, not 3; images have three");
    images_refused(&idx(&[1; 255], &[0]), "FILE: has 255 axes, not 3; images have three");
    images_refused(&idx(&[], &[]), "FILE: has 0 axes, not 3; images have three");
    images_refused(
        &idx(&[u32::MAX; 3], &[]),
        "FILE: claims 4294967295x4294967295x4294967295 bytes, more than 1073741824; it is damaged",
    );
    images_refused(&idx(&[1 << 31, 1, 1], &[]), "FILE: claims 2147483648x1x1 bytes, more than");
}

#[test]
fn idx_of_another_length() {
    let good = idx(&[2, 1, 2], &[1, 2, 3, 4]);
    images_refused(&good[..19], "FILE: ends after 3 of 4 bytes; it is damaged");
    images_refused(&idx(&[1 << 30, 1, 1], &[1]), "FILE: ends after 1 of 1073741824 bytes");
    let mut longer = good.clone();
    longer.push(5);
    images_refused(&longer, "FILE: has data after its 4 bytes; it is damaged");
    images_refused(&idx(&[3, 1, 1], &[1, 2, 3]), "FILE: has 3 images, but LABELS has 2 labels;");
    images_refused(&idx(&[2, 0, 7], &[]), "FILE: has 2 images of 0x7 pixels; it must not be empty");
    images_refused(&idx(&[0, 2, 2], &[]), "FILE: has 0 images, but LABELS has 2 labels");

    let packed = gzip(&good);
    images_refused(&packed[..packed.len() - 3], "FILE: ends early; it is truncated");
    images_refused(&packed[..12], "FILE: ends early; it is truncated");
    let mut flipped = packed.clone();
    *flipped.last_mut().unwrap() ^= 1;
    images_refused(&flipped, "FILE: cannot be decompressed (");
    // Compressed zeros, more than claimed.
    images_refused(&gzip(&idx(&[1, 1, 1], &vec![0; 10 << 20])), "FILE: has data after its 1 bytes");
}

#[test]
fn idx_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none");
    let error = read_idx(&path, &path).unwrap_err().to_string();
    assert!(error.contains("none: cannot open: "), "{error}");
    let error = read_idx(folder.path(), folder.path()).unwrap_err().to_string();
    assert!(error.ends_with(": is a folder; name a file in it"), "{error}");
}

/// Truncated files and flipped bits do not panic.
#[test]
fn nothing_panics() {
    let folder = tempfile::tempdir().unwrap();
    let (images, labels) = (folder.path().join("images"), folder.path().join("labels"));
    fs::write(&labels, idx(&[2], &[0, 1])).unwrap();
    let image = png(3, 2, png::ColorType::Grayscale, &[1, 2, 3, 4, 5, 6]);
    let files = [
        idx(&[2, 1, 2], &[1, 2, 3, 4]),
        gzip(&idx(&[2, 1, 2], &[1, 2, 3, 4])),
        gzip(&tar(&[("A/1.png", &image)])),
        tar(&[("A/1.png", &image)])[..1024].to_vec(),
    ];
    for file in files {
        let try_all = |bytes: &[u8]| {
            fs::write(&images, bytes).unwrap();
            let _ = read_idx(&images, &labels);
            let _ = read_png_folders(&images, &["A"]);
            let _ = walk(&images, &|_| true, &mut |_, _| Ok(()));
            let _ = Scene::parse("x", bytes);
        };
        for at in (0..file.len()).step_by((file.len() / 100).max(1)) {
            try_all(&file[..at]);
            for bit in [1, 128] {
                let mut broken = file.clone();
                broken[at] ^= bit;
                try_all(&broken);
            }
        }
    }
}

#[test]
fn archives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tar");
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let error = walk(&path, &|_| true, &mut |_, _| Ok(())).unwrap_err().to_string();
        error.replace(path.to_str().unwrap(), "FILE")
    };
    let expected = "FILE: is not a tar archive; copy or fetch it again";
    assert_eq!(refused(b""), expected);
    assert_eq!(refused(b"<html>not found</html>"), expected);
    assert_eq!(refused(&[b'x'; 2048]), expected);
    let whole = gzip(&tar(&[("a/b", &[7; 5000])]));
    assert!(refused(&whole[..whole.len() / 2]).starts_with("FILE"), "{}", refused(&whole[..40]));
    let plain = tar(&[("a", b"1"), ("b", &[7; 5000])]);
    let error = refused(&plain[..2000]);
    assert!(error.starts_with("FILE: b: ends early;"), "{error}");
    // A member that claims to be enormous.
    let mut header = tar::Header::new_ustar();
    header.set_path("big").unwrap();
    header.set_size(8 << 30);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend([0; 1024]);
    assert!(refused(&bytes).starts_with("FILE: big: ends early;"), "{}", refused(&bytes));
    // Names and numbers with terminal escape sequences.
    for field in [0..6, 124..130] {
        let mut header = tar::Header::new_ustar();
        header.set_path("name").unwrap();
        header.set_size(5000);
        header.as_mut_bytes()[field].copy_from_slice(b"\x1b[2J\n\x07");
        header.set_cksum();
        let error = refused(&[header.as_bytes(), &[0; 1024][..]].concat());
        assert!(!error.chars().any(char::is_control), "{error:?}");
    }
    // xz with a dictionary of 4 GiB, above the memory limit.
    let mut xz = b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46\x02\0\x21\x01\x28\0\0\0".to_vec();
    xz.extend(crc32fast::hash(&xz[12..]).to_le_bytes());
    xz.extend([0; 64]);
    let error = refused(&xz);
    assert!(error.starts_with("FILE: cannot be decompressed ("), "{error}");
}

#[test]
fn scenes() {
    let refused = |text: &str, expected: &str| {
        let error = Scene::parse("F", text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "found:    {error}\nexpected: {expected}");
        assert!(!error.contains('\n') && error.len() < 300, "{error}");
    };
    refused("", "F: has no positions; each line is a frame, a pedestrian, x and y, separated by");
    refused(" \n\t\n\r\n", "F: has no positions;");
    refused("0 1 2\n", "F: line 1: has 3 of 4 values;");
    refused("0 1 2 3\n\n0 1 2 3 4 5\n", "F: line 3: has 6 values, not 4;");
    refused("0 1 2,5 3", "F: line 1: `2,5` is not a number;");
    refused("0 1 \u{1b}[2J 3", r"F: line 1: `\u{1b}[2J` is not a number;");
    refused("0 1 nan 3", "F: line 1: the position (NaN, 3) is not finite;");
    refused("0 1 2 -inf", "F: line 1: the position (2, -inf) is not finite;");
    refused("0 1 2 1e999", "F: line 1: the position (2, inf) is not finite;");
    refused("0.5 1 2 3", "F: line 1: frame 0.5 is not a whole number;");
    refused("-10 1 2 3", "F: line 1: frame -10 is not a whole number;");
    refused("1e12 1 2 3", "F: line 1: frame 1000000000000 is not a whole number;");
    refused("nan 1 2 3", "F: line 1: frame NaN is not a whole number;");
    refused("0 1.5 2 3", "F: line 1: pedestrian 1.5 is not a whole number;");
    refused(
        "7 1 2 3\n17 1 2 3\n20 1 2 3",
        "F: line 3: frame 20 is not a multiple of 10 frames from the first frame, 7;",
    );
    refused("0 1 2 3\n0 1 2 4", "F: line 2: pedestrian 1 has two positions in frame 0;");
    let error = Scene::parse("F", b"0 1 2 \xff").unwrap_err().to_string();
    assert!(error.starts_with("F: line 1: `"), "{error}");
}

/// Unusual but valid files.
#[test]
fn scenes_in_disorder() {
    let text = "20 2 5 6\r\n0.0\t2.0\t1\t2\r\n\r\n  10   1 -0 0  \n20 2 5 6\n60 2 0 0";
    let scene = Scene::parse("F", text.as_bytes()).unwrap();
    let agents: Vec<u32> = scene.tracks.iter().map(|track| track.agent).collect();
    assert_eq!((agents, scene.repeated), (vec![1, 2], 1));
    let track = &scene.tracks[1];
    assert_eq!(track.frames, [0, 20, 60]);
    assert_eq!(track.positions, [[1.0, 2.0], [5.0, 6.0], [0.0, 0.0]]);
    assert_eq!(track.stretches().collect::<Vec<_>>(), [0..1, 1..2, 2..3]);
    let nobody = Track { agent: 0, frames: Vec::new(), positions: Vec::new() };
    assert_eq!(nobody.stretches().count(), 0);
}
