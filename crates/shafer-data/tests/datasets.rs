//! Finding, reading and verifying data sets, with small made-up files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::slice::from_ref;

use common::{gzip, idx, png, tar};
use shafer_data::dataset::{Images, Scene, Split, read_png_folders, set, walk};

const FILES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

/// Three training images of 2x2 and one test image.
fn mnist() -> [Vec<u8>; 4] {
    let pixels: Vec<u8> = (1..=12).collect();
    [
        idx(&[3, 2, 2], &pixels),
        idx(&[3], &[5, 0, 9]),
        idx(&[1, 2, 2], &[9, 9, 9, 9]),
        idx(&[1], &[2]),
    ]
}

fn write(path: &Path, contents: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

fn root() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}

#[test]
fn images_plain_compressed_and_in_folders_of_folders() {
    type Keep = fn(&str) -> String;
    let layouts: [(Keep, bool); 3] = [
        (|name| name.to_owned(), false),
        (|name| format!("{name}.gz"), true),
        (|name| format!("MNIST/raw/{name}"), false),
    ];
    for (keep, compressed) in layouts {
        let (_folder, root) = root();
        for (name, contents) in FILES.iter().zip(mnist()) {
            let contents = if compressed { gzip(&contents) } else { contents };
            write(&root.join("mnist").join(keep(name)), &contents);
        }
        let train = set("mnist").unwrap().images(Split::Train, from_ref(&root)).unwrap();
        assert_eq!((train.len(), train.rows, train.columns), (3, 2, 2));
        assert_eq!((train.image(1), &train.labels[..]), (&[5, 6, 7, 8][..], &[5, 0, 9][..]));
        let test = set("mnist").unwrap().images(Split::Test, &[root]).unwrap();
        assert_eq!(test.labels, [2]);
    }
}

/// Gzip files can have several members.
#[test]
fn gzip_of_two_members() {
    let (_folder, root) = root();
    let [images, labels, ..] = mnist();
    let mut two = gzip(&images[..20]);
    two.extend(gzip(&images[20..]));
    write(&root.join("images"), &two);
    write(&root.join("labels"), &labels);
    let read = shafer_data::dataset::read_idx(&root.join("images"), &root.join("labels")).unwrap();
    assert_eq!(read.pixels.len(), 12);
}

#[test]
fn folders_are_searched_in_order() {
    let (_folder, root) = root();
    let (first, second, absent) = (root.join("1"), root.join("2"), root.join("3"));
    for (name, contents) in FILES.iter().zip(mnist()) {
        write(&second.join("mnist").join(name), &contents);
    }
    // The first folder has an incomplete set.
    write(&first.join("mnist").join(FILES[0]), &mnist()[0]);
    let mnist_set = set("mnist").unwrap();
    let folders = [absent.clone(), first.clone(), second.clone()];
    assert_eq!(mnist_set.find(&folders).unwrap().place(), second.join("mnist"));

    let error = mnist_set.find(&[absent.clone(), first.clone()]).unwrap_err().to_string();
    let expected = format!(
        "mnist: is incomplete: train-labels-idx1-ubyte is not in {}; run `shafer data fetch mnist`",
        first.join("mnist").display()
    );
    assert_eq!(error, expected);
    // A folder without any file of the set counts as missing.
    write(&root.join("4/mnist/notes.txt"), b"");
    let error = mnist_set.find(&[absent.clone(), root.join("4")]).unwrap_err().to_string();
    let expected = format!(
        "mnist: not found in {} or {}; run `shafer data fetch mnist`",
        absent.join("mnist").display(),
        root.join("4/mnist").display()
    );
    assert_eq!(error, expected);
    let error = set("miniimagenet").unwrap().find(&[absent]).unwrap_err().to_string();
    assert!(error.contains("; it needs a manual download: accept ImageNet's terms"), "{error}");

    // System folders come last, and have no subfolder with the set's name.
    let mut fashion = set("fashion").unwrap().clone();
    fashion.system = vec![root.join("usr")];
    for (name, contents) in FILES.iter().zip(mnist()) {
        write(&root.join("usr").join(name).with_extension("gz"), &gzip(&contents));
    }
    assert_eq!(fashion.find(&[root.join("4")]).unwrap().place(), root.join("usr"));
}

/// Valid files with other contents.
#[test]
fn verification_names_what_is_wrong() {
    let (_folder, root) = root();
    let mut set = set("mnist").unwrap().clone();
    for ((name, contents), file) in FILES.iter().zip(mnist()).zip(&mut set.files) {
        write(&root.join("mnist").join(name), &contents);
        file.bytes = contents.len() as u64;
    }
    // Computed with `sha256sum`.
    set.files[1].sha256 =
        "426dc2e9e7eea081ebaf345cde82a628112f5fc54a1e6b128e8b394a879f3a18".to_owned();
    set.files[2].bytes -= 1;
    set.files[3].bytes += 1;
    let checks = set.find(from_ref(&root)).unwrap().verify();
    let problem = |i: usize| checks[i].problem.as_deref().unwrap();
    assert_eq!(checks.len(), 4);
    assert!(problem(0).contains("/mnist/train-images-idx3-ubyte: has the SHA-256 "), "{checks:?}");
    assert!(problem(2).contains(": has more than 19 bytes; "), "{checks:?}");
    assert!(problem(3).contains(": has 9 bytes, not 10; "), "{checks:?}");

    // Valid, whether compressed or not.
    assert_eq!(checks[1].problem, None);
    fs::remove_file(root.join("mnist").join(FILES[1])).unwrap();
    write(&root.join("mnist").join(FILES[1]).with_extension("gz"), &gzip(&mnist()[1]));
    assert_eq!(set.find(&[root]).unwrap().verify()[1].problem, None);
}

fn letters() -> Vec<(&'static str, Vec<u8>)> {
    let grey = |pixels: &[u8]| png(2, 1, png::ColorType::Grayscale, pixels);
    vec![
        ("notMNIST_small/B/2.png", grey(&[7, 8])),
        ("notMNIST_small/B/1.png", grey(&[5, 6])),
        ("notMNIST_small/A/9.png", grey(&[3, 4])),
        ("notMNIST_small/A/broken.png", b"\x89PNG".to_vec()),
        ("notMNIST_small/A/empty.png", Vec::new()),
        ("notMNIST_small/A/._9.png", b"not counted".to_vec()),
        ("notMNIST_small/Z/1.png", b"not a class".to_vec()),
        ("notMNIST_small/README.txt", b"not an image".to_vec()),
    ]
}

#[test]
fn png_folders_and_their_archives_hold_the_same() {
    let (_folder, root) = root();
    let place = root.join("notmnist");
    for (path, contents) in letters() {
        write(&place.join(path), &contents);
    }
    let notmnist = set("notmnist").unwrap();
    let images = notmnist.images(Split::Train, from_ref(&root)).unwrap();
    let expected = Images {
        pixels: vec![3, 4, 5, 6, 7, 8],
        rows: 1,
        columns: 2,
        labels: vec![0, 1, 1],
        skipped: 2,
    };
    assert_eq!(images, expected);

    let letters = letters();
    let members: Vec<_> = letters.iter().map(|(path, bytes)| (*path, &bytes[..])).collect();
    for archive in [tar(&members), gzip(&tar(&members))] {
        fs::remove_dir_all(&place).unwrap();
        write(&place.join("notMNIST_small.tar.gz"), &archive);
        let found = notmnist.find(from_ref(&root)).unwrap();
        assert_eq!(found.place(), place.join("notMNIST_small.tar.gz"));
        assert_eq!(notmnist.images(Split::Train, from_ref(&root)).unwrap(), expected);
        let problem = found.verify().remove(0).problem.unwrap();
        assert!(problem.contains(": has 3 images, not 18724; "), "{problem}");
    }

    // As IDX in another order: the same images, without skipped ones.
    fs::remove_dir_all(&place).unwrap();
    let pixels = idx(&[3, 1, 2], &[7, 8, 3, 4, 5, 6]);
    write(&place.join("notmnist-small-images-idx3-ubyte"), &pixels);
    write(&place.join("notmnist-small-labels-idx1-ubyte"), &idx(&[3], &[1, 0, 1]));
    let images = notmnist.images(Split::Train, &[root]).unwrap();
    assert_eq!(images, Images { skipped: 0, ..expected });
}

/// The checksum of images does not depend on their order.
#[test]
fn png_sets_are_verified_in_any_order() {
    let (_folder, root) = root();
    let grey = |pixels: &[u8]| png(1, 1, png::ColorType::Grayscale, pixels);
    let archive = |name: &str, members: &[(&str, &[u8])]| {
        let path = root.join(name);
        write(&path, &tar(members));
        path
    };
    let (one, two) = (grey(&[1]), grey(&[2]));
    let mut png = set("notmnist").unwrap().images.clone().unwrap().png.unwrap();
    png.images = 2;
    // `sha256sum` of the bytes 0, 1, 1, 2: class 0 of pixel 1, class 1 of pixel 2.
    png.sha256 = "ba5202aba1ea8fd56c0383fa803f084843f4165e6df2a4c958875f1933c22034".to_owned();
    let path = archive("a.tar", &[("A/1.png", &one), ("B/1.png", &two)]);
    png.check(&path, &["A", "B"]).unwrap();
    let path = archive("b.tar", &[("x/B/7.png", &two), ("x/A/8.png", &one)]);
    png.check(&path, &["A", "B"]).unwrap();
    let path = archive("c.tar", &[("A/1.png", &two), ("B/1.png", &one)]);
    assert!(png.check(&path, &["A", "B"]).is_err());
}

#[test]
fn png_of_other_kinds() {
    let (_folder, root) = root();
    let grey = png(2, 2, png::ColorType::Grayscale, &[1, 2, 3, 4]);
    write(&root.join("A/1.png"), &grey);
    write(&root.join("A/2.png"), &png(1, 1, png::ColorType::Rgb, &[1, 2, 3]));
    let error = read_png_folders(&root, &["A"]).unwrap_err().to_string();
    assert!(error.ends_with("A/2.png: is not a grey image; convert the images to 8-bit grey"));
    write(&root.join("A/2.png"), &png(1, 2, png::ColorType::Grayscale, &[1, 2]));
    let error = read_png_folders(&root, &["A"]).unwrap_err().to_string();
    assert!(error.contains("A/2.png: is 2x1, but the first image is 2x2; "), "{error}");
    let error = read_png_folders(&root, &["B"]).unwrap_err().to_string();
    assert!(error.contains(": has no valid image and 0 invalid ones; "), "{error}");

    // One bit per pixel is expanded to a byte.
    let mut bits = Vec::new();
    let mut encoder = png::Encoder::new(&mut bits, 2, 1);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    encoder.write_header().unwrap().write_image_data(&[0b0100_0000]).unwrap();
    write(&root.join("C/1.png"), &bits);
    assert_eq!(read_png_folders(&root, &["C"]).unwrap().pixels, [0, 255]);
}

/// Names of more than 100 bytes, in the two encodings of tar. Fonts have such names.
#[test]
fn long_names_in_archives() {
    let (_folder, root) = root();
    let (long, image) = ("x".repeat(120), png(1, 1, png::ColorType::Grayscale, &[7]));
    let path = format!("set/A/{long}.png");
    let mut header = tar::Header::new_gnu();
    header.set_size(image.len() as u64);
    let mut gnu = tar::Builder::new(Vec::new());
    gnu.append_data(&mut header, &path, &image[..]).unwrap();
    let mut pax = tar::Builder::new(Vec::new());
    pax.append_pax_extensions([("mtime", &b"1.5"[..]), ("path", path.as_bytes())]).unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_path("set/A/xxx").unwrap();
    header.set_size(image.len() as u64);
    header.set_cksum();
    pax.append(&header, &image[..]).unwrap();
    // A long name applies to one entry only.
    header.set_path("set/B/1.png").unwrap();
    header.set_cksum();
    pax.append(&header, &image[..]).unwrap();
    for (archive, labels) in [(gnu, &[0][..]), (pax, &[0, 1])] {
        write(&root.join("x.tar"), &archive.into_inner().unwrap());
        let images = read_png_folders(&root.join("x.tar"), &["A", "B"]).unwrap();
        assert_eq!(images.labels, labels);
    }
}

/// A scene of each name, with one pedestrian whose number identifies it.
fn scenes() -> Vec<(String, Vec<u8>)> {
    let names = set("ethucy").unwrap().files.iter().map(|file| file.name.clone());
    names.zip(1..).map(|(name, n)| (name, format!("0\t{n}\t1.5\t{n}\n").into_bytes())).collect()
}

#[test]
fn folds_test_on_their_own_scenes() {
    let (_folder, root) = root();
    let ethucy = set("ethucy").unwrap();
    for (name, text) in scenes() {
        write(&root.join("ethucy/raw/eth").join(name), &text);
    }
    let names = |fold, split| -> Vec<String> {
        let scenes: Vec<Scene> = ethucy.scenes(fold, split, from_ref(&root)).unwrap();
        scenes.into_iter().map(|scene| scene.name).collect()
    };
    assert_eq!(names("eth", Split::Test), ["biwi_eth"]);
    assert_eq!(names("univ", Split::Test), ["students001", "students003"]);
    let expected = [
        "biwi_eth_val",
        "biwi_hotel_val",
        "crowds_zara01_val",
        "crowds_zara02_val",
        "crowds_zara03_val",
        "uni_examples_val",
    ];
    assert_eq!(names("univ", Split::Val), expected);
    assert_eq!(names("zara2", Split::Train).len(), 7);

    // From an archive with copies of a file in several folders.
    let from_folder = ethucy.scenes("hotel", Split::Train, from_ref(&root)).unwrap();
    let scenes = scenes();
    let copies: Vec<(String, &[u8])> = ["raw/all", "raw/other"]
        .iter()
        .flat_map(|at| scenes.iter().map(move |(name, text)| (format!("{at}/{name}"), &text[..])))
        .collect();
    let members: Vec<_> = copies.iter().map(|(path, text)| (&path[..], *text)).collect();
    fs::remove_dir_all(root.join("ethucy")).unwrap();
    write(&root.join("ethucy/ethucy_raw.tar.xz"), &tar(&members));
    assert_eq!(ethucy.scenes("hotel", Split::Train, from_ref(&root)).unwrap(), from_folder);
    let checks = ethucy.find(from_ref(&root)).unwrap().verify();
    assert!(checks.len() == 24 && checks.iter().all(|check| check.problem.is_some()));

    write(&root.join("ethucy/ethucy_raw.tar.xz"), &tar(&members[..2]));
    let error = ethucy.scenes("zara1", Split::Test, &[root]).unwrap_err().to_string();
    assert!(error.ends_with(": has no file crowds_zara01.txt; fetch it again"), "{error}");
}

#[test]
fn sets_of_another_kind() {
    let error = set("ethucy").unwrap().images(Split::Train, &[]).unwrap_err().to_string();
    assert_eq!(error, "ethucy: is not a set of images");
    let error = set("mnist").unwrap().scenes("eth", Split::Train, &[]).unwrap_err().to_string();
    assert_eq!(error, "mnist: is not a set of pedestrians");
    let error = set("notmnist").unwrap().images(Split::Test, &[]).unwrap_err().to_string();
    assert_eq!(error, "notmnist: has no split test; there is train");
}

#[test]
fn folders_are_walked_in_order_and_not_in_circles() {
    let (_folder, root) = root();
    for path in ["b/2", "a", "b/1", "c/d/e"] {
        write(&root.join(path), path.as_bytes());
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(&root, root.join("c/circle")).unwrap();
    let mut seen = Vec::new();
    walk(&root, &|path| !path.starts_with("c/circle"), &mut |path, contents| {
        assert_eq!(path.to_str().unwrap().as_bytes(), contents);
        seen.push(path.display().to_string());
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, ["a", "b/1", "b/2", "c/d/e"]);
}
