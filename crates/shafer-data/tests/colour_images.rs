//! Colour images: reading CIFAR and JPEG files, the cache, and the loader, compared with Pillow and
//! torchvision.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::{self, File};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use common::{gzip, png, tar};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::Value;
use shafer_data::dataset::{
    ColourImages, ImageTransform, Loader, LoaderConfig, Prefetch, RandomResizedCrop, Set, Split,
    read_png_batches, resize, set,
};

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/images");
    fs::read(folder.join(name)).unwrap()
}

/// Rows, columns and RGB pixels.
fn fixture_png(name: &str) -> (usize, usize, Vec<u8>) {
    let mut reader = png::Decoder::new(Cursor::new(fixture(name))).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgb);
    (info.height as usize, info.width as usize, pixels)
}

fn expected() -> Value {
    serde_json::from_slice(&fixture("images.json")).unwrap()
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

/// The JPEG fixtures, which Pillow encoded and decoded.
const JPEGS: [&str; 6] = ["420", "422", "444", "progressive", "restart", "grey"];

/// A CSV file with a line for each JPEG fixture, in two classes.
fn listing() -> String {
    let line = |(i, name)| format!("{name}.jpg,n{}\n", i % 2);
    format!("filename,label\n{}", JPEGS.iter().enumerate().map(line).collect::<String>())
}

/// miniImageNet as loose files. The validation images are training images, too.
fn loose(root: &Path) -> PathBuf {
    let place = root.join("miniimagenet");
    for name in JPEGS {
        write(&place.join("images").join(format!("{name}.jpg")), &fixture(&format!("{name}.jpg")));
    }
    write(&place.join("paper_train_small.csv"), listing().as_bytes());
    write(&place.join("paper_val_small.csv"), b"filename,label\n444.jpg,n0\r\n422.jpg,n1\r\n");
    place
}

fn mini(split: Split, root: &Path, cache: Option<&Path>) -> shafer_data::Result<ColourImages> {
    set("miniimagenet").unwrap().colour_images(split, &[root.to_owned()], cache)
}

/// At most 1% of the range on average, and 4% anywhere: decoders round differently, and smooth the
/// edges of subsampled colours differently.
#[test]
fn jpeg_as_pillow_decodes_it() {
    let (_folder, root) = root();
    loose(&root);
    let images = mini(Split::Train, &root, None).unwrap();
    assert_eq!((images.len(), images.rows, images.columns), (JPEGS.len(), 84, 84));
    for (index, name) in JPEGS.iter().enumerate() {
        let (_, _, pixels) = fixture_png(&format!("{name}.png"));
        let differences: Vec<u8> =
            images.image(index).iter().zip(&pixels).map(|(a, b)| a.abs_diff(*b)).collect();
        let mean = differences.iter().map(|&d| f64::from(d)).sum::<f64>() / pixels.len() as f64;
        let most = differences.iter().max().unwrap();
        assert!(mean < 2.55 && *most <= 10, "{name}: mean {mean}, largest {most}");
    }
}

#[test]
fn resized_as_by_pillow() {
    let (rows, columns, source) = fixture_png("source.png");
    for (number, case) in expected()["resized"].as_array().unwrap().iter().enumerate() {
        let number_at = |name: &str, i: usize| case[name][i].as_u64().unwrap() as usize;
        let [top, left, height, width] = [0, 1, 2, 3].map(|i| number_at("crop", i));
        let to = (number_at("to", 0), number_at("to", 1));
        assert!(top + height <= rows && left + width <= columns);
        let part: Vec<u8> = (top..top + height)
            .flat_map(|y| &source[3 * (y * columns + left)..3 * (y * columns + left + width)])
            .copied()
            .collect();
        let (to_rows, to_columns, pixels) = fixture_png(&format!("resized-{number}.png"));
        assert_eq!(to, (to_rows, to_columns));
        assert_eq!(resize(&part, (height, width), to), pixels, "case {number}");
    }
}

/// The means of 40,000 crops within 5 standard errors of those of torchvision's method in NumPy.
#[test]
fn crops_are_distributed_as_torchvisions() {
    const COUNT: usize = 40_000;
    let random = RandomResizedCrop::new(64);
    let mut rng = StdRng::seed_from_u64(5);
    let mut sums = [0.0; 6];
    for _ in 0..COUNT {
        let crop = random.crop(84, 84, &mut rng);
        assert!(crop.top + crop.rows <= 84 && crop.left + crop.columns <= 84);
        let [top, left, rows, columns] =
            [crop.top, crop.left, crop.rows, crop.columns].map(|n| n as f64);
        let found = [top, left, rows, columns, rows * columns, columns / rows];
        sums.iter_mut().zip(found).for_each(|(sum, value)| *sum += value);
    }
    let expected = &expected()["crops"];
    for (i, sum) in sums.iter().enumerate() {
        let [mean, deviation] =
            ["mean", "deviation"].map(|name| expected[name][i].as_f64().unwrap());
        let error = (sum / COUNT as f64 - mean).abs();
        assert!(error < 5.0 * deviation / (COUNT as f64).sqrt(), "{i}: {sum} {mean}");
    }
}

#[test]
fn crops_that_never_fit() {
    // The whole area at a ratio of 10 does not fit into an image.
    let random =
        RandomResizedCrop { scale: [1.0, 1.0], ratio: [10.0, 10.0], ..RandomResizedCrop::new(8) };
    let crop = random.crop(50, 20, &mut StdRng::seed_from_u64(0));
    assert_eq!((crop.top, crop.left, crop.rows, crop.columns), (24, 0, 2, 20));
    let random = RandomResizedCrop { ratio: [0.1, 0.1], ..random };
    let crop = random.crop(20, 50, &mut StdRng::seed_from_u64(0));
    assert_eq!((crop.top, crop.left, crop.rows, crop.columns), (0, 24, 20, 2));
}

/// 256 images of one pixel, of every byte value.
fn bytes() -> Arc<ColourImages> {
    let pixels = (0..=255_u8).flat_map(|byte| [byte; 3]).collect();
    let labels = (0..256_u16).collect();
    let classes = (0..256).map(|i| i.to_string()).collect();
    Arc::new(ColourImages { pixels, rows: 1, columns: 1, labels, classes })
}

fn config(batch: usize, shuffle: bool, seed: u64) -> LoaderConfig {
    let transform = ImageTransform::CentreCrop { resize: 1, size: 1 };
    LoaderConfig { batch, transform, shuffle, drop_last: false, seed }
}

#[test]
fn pixels_are_normalised_as_by_torchvision() {
    let batch = Loader::new(bytes(), config(256, false, 0)).unwrap().batch(0, 0);
    let expected: Vec<f32> = expected()["normalised"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|value| [value.as_f64().unwrap() as f32; 3])
        .collect();
    assert_eq!(batch.pixels, expected);
}

#[test]
fn an_epoch_has_every_image_once_in_an_order_of_its_own() {
    let loader = Loader::new(bytes(), config(10, true, 3)).unwrap();
    assert_eq!(loader.batches(), 26);
    let order = |epoch| -> Vec<usize> {
        (0..26).flat_map(|index| loader.batch(epoch, index).indices).collect()
    };
    let (first, second) = (order(0), order(1));
    assert_ne!(first, second);
    for mut order in [first.clone(), second] {
        assert!(!order.is_sorted());
        order.sort_unstable();
        assert!(order.into_iter().eq(0..256));
    }
    let other = Loader::new(bytes(), config(10, true, 4)).unwrap();
    assert_ne!(other.batch(0, 0).indices, first[..10]);
    assert_eq!(loader.batch(0, 25).labels.len(), 6);
    for label in loader.batch(0, 7).labels.iter().zip(loader.batch(0, 7).indices) {
        assert_eq!(usize::from(*label.0), label.1);
    }
    let whole = Loader::new(bytes(), LoaderConfig { drop_last: true, ..config(10, true, 3) });
    assert_eq!(whole.unwrap().batches(), 25);
}

/// A loader of random crops of 20 copies of the fixture.
fn augmented(seed: u64) -> Loader {
    let (rows, columns, pixels) = fixture_png("source.png");
    let classes = vec!["only".to_owned()];
    let labels = vec![0; 20];
    let images = ColourImages { pixels: pixels.repeat(20), rows, columns, labels, classes };
    let transform = ImageTransform::RandomResizedCrop(RandomResizedCrop::new(16));
    Loader::new(images.into(), LoaderConfig { transform, ..config(3, true, seed) }).unwrap()
}

#[test]
fn a_batch_depends_on_seed_epoch_and_position_only() {
    let loader = augmented(1);
    let batch = loader.batch(2, 5);
    assert_eq!(batch.pixels.len(), 3 * 3 * 16 * 16);
    let again = augmented(1);
    again.batch(0, 0);
    assert_eq!(again.batch(2, 5), batch);
    assert_ne!(augmented(2).batch(2, 5).pixels, batch.pixels);
    // The same image is cropped differently in another epoch, and in another batch of this one.
    let image = |epoch, image| {
        let mut batches = (0..loader.batches()).map(|index| loader.batch(epoch, index));
        batches.find_map(|batch| {
            let at = batch.indices.iter().position(|&index| index == image)?;
            Some(batch.pixels[at * 768..(at + 1) * 768].to_vec())
        })
    };
    assert_ne!(image(0, 4), image(1, 4));
    assert_ne!(image(0, 4), image(0, 5));
}

/// Prefetched batches equal those made on demand: in sequence, after a jump (as at a resume), backwards, and
/// across the end of an epoch.
#[test]
fn prefetched_batches_are_the_same() {
    let plain = augmented(9);
    for ahead in [0, 1, 5] {
        let mut batches = Prefetch::new(augmented(9), ahead);
        let positions = [(0, 0), (0, 1), (0, 2), (3, 5), (3, 6), (4, 0), (4, 1), (4, 0), (0, 0)];
        for (epoch, index) in positions {
            assert_eq!(batches.batch(epoch, index), plain.batch(epoch, index), "{epoch} {index}");
        }
    }
}

#[test]
fn flips_and_planes() {
    // Columns of red, green and blue. Crops are the whole image.
    let pixels = [255, 0, 0, 0, 255, 0, 0, 0, 255].repeat(3);
    let images = ColourImages { pixels, rows: 3, columns: 3, labels: vec![0], classes: vec![] };
    let images = Arc::new(images);
    let batch = |flip| {
        let random = RandomResizedCrop {
            scale: [1.0, 1.0],
            ratio: [1.0, 1.0],
            flip,
            ..RandomResizedCrop::new(3)
        };
        let transform = ImageTransform::RandomResizedCrop(random);
        let config = LoaderConfig { transform, ..config(1, false, 0) };
        Loader::new(Arc::clone(&images), config).unwrap().batch(0, 0).pixels
    };
    let rows = |row: [f32; 3]| row.repeat(3);
    let (left, middle, right) =
        (rows([1.0, -1.0, -1.0]), rows([-1.0, 1.0, -1.0]), rows([-1.0, -1.0, 1.0]));
    assert_eq!(batch(0.0), [&left[..], &middle, &right].concat());
    assert_eq!(batch(1.0), [&right[..], &middle, &left].concat());
}

#[test]
fn impossible_loaders() {
    let refused = |config: LoaderConfig| Loader::new(bytes(), config).unwrap_err().to_string();
    let crop = |crop: RandomResizedCrop| LoaderConfig {
        transform: ImageTransform::RandomResizedCrop(crop),
        ..config(1, false, 0)
    };
    let random = RandomResizedCrop::new(4);
    let whole = |resize, size| LoaderConfig {
        transform: ImageTransform::CentreCrop { resize, size },
        ..config(1, false, 0)
    };
    for (config, expected) in [
        (config(0, false, 0), "there are 256 images for batches of 0"),
        (
            LoaderConfig { drop_last: true, ..config(257, false, 0) },
            "256 images for batches of 257",
        ),
        (crop(RandomResizedCrop { size: 0, ..random }), "size is 0, but must be from 1 to 4096"),
        (crop(RandomResizedCrop { scale: [0.0, 1.0], ..random }), "scale is 0 to 1, but"),
        (crop(RandomResizedCrop { scale: [f64::NAN, 1.0], ..random }), "scale is NaN to 1, but"),
        (crop(RandomResizedCrop { ratio: [2.0, 1.0], ..random }), "ratio is 2 to 1, but"),
        (crop(RandomResizedCrop { flip: 1.5, ..random }), "flip is 1.5, but must be a probability"),
        (whole(3, 4), "resize is 3, but must be from size, 4, to 4096"),
        (whole(usize::MAX, 4), "but must be from size, 4, to 4096"),
    ] {
        let found = refused(config);
        assert!(found.contains(expected), "{found}");
    }
}

/// A record with every pixel (label, 10 + label, 20 + label).
fn record(label: u8) -> Vec<u8> {
    [vec![label], vec![label; 1024], vec![10 + label; 1024], vec![20 + label; 1024]].concat()
}

/// The six binary files. Each has an image of every class, starting with another class.
fn cifar_files() -> Vec<(String, Vec<u8>)> {
    let names = set("cifar10").unwrap().files.iter().map(|file| file.name.clone());
    let file = |first: u8| (first..first + 10).flat_map(|label| record(label % 10)).collect();
    names.zip((0..).map(file)).collect()
}

#[test]
fn cifar_from_files_and_from_the_archive() {
    let (_folder, root) = root();
    let cifar = set("cifar10").unwrap();
    for (name, bytes) in cifar_files() {
        write(&root.join("cifar10/cifar-10-batches-bin").join(name), &bytes);
    }
    let train = cifar.colour_images(Split::Train, from_ref(&root), None).unwrap();
    assert_eq!((train.len(), train.rows, train.columns), (50, 32, 32));
    assert_eq!(train.labels[9..13], [9, 1, 2, 3]);
    assert_eq!(train.image(12)[..6], [3, 13, 23, 3, 13, 23]);
    assert!(train.image(12).chunks_exact(3).all(|pixel| pixel == [3, 13, 23]));
    assert_eq!(train.classes[9], "truck");
    let test = cifar.colour_images(Split::Test, from_ref(&root), None).unwrap();
    assert_eq!(test.labels, [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]);

    // The archive: without a cache, writing the cache, and reading it.
    fs::remove_dir_all(root.join("cifar10")).unwrap();
    let files = cifar_files();
    let members: Vec<(String, &[u8])> = files
        .iter()
        .map(|(name, bytes)| (format!("cifar-10-batches-bin/{name}"), &bytes[..]))
        .collect();
    let members: Vec<(&str, &[u8])> =
        members.iter().map(|(name, bytes)| (&name[..], *bytes)).collect();
    let archive = root.join("cifar10/cifar-10-binary.tar.gz");
    write(&archive, &gzip(&tar(&members)));
    let cache = root.join("cache");
    for cache in [None, Some(cache.as_path()), Some(cache.as_path())] {
        assert_eq!(cifar.colour_images(Split::Train, from_ref(&root), cache).unwrap(), train);
        assert_eq!(cifar.colour_images(Split::Test, from_ref(&root), cache).unwrap(), test);
    }
    assert!(cache.join("cifar10-train.images").exists());
}

/// The files of the npm package: PNG files with one image per row, and labels.
fn package(place: &Path) {
    for (number, (name, bytes)) in cifar_files().into_iter().enumerate() {
        let rows: Vec<u8> = bytes
            .chunks_exact(3073)
            .flat_map(|r| (0..1024).flat_map(|i| [r[1 + i], r[1025 + i], r[2049 + i]]))
            .collect();
        let name = name.replace(".bin", ".png");
        assert!(number < 6);
        write(&place.join(name), &png(1024, 10, png::ColorType::Rgb, &rows));
    }
    // Labels are at multiples of 10,000, as in the real package. Files have ten images here.
    let mut labels = vec![0; 50_000];
    for (number, (_, bytes)) in cifar_files()[..5].iter().enumerate() {
        for (index, record) in bytes.chunks_exact(3073).enumerate() {
            labels[number * 10_000 + index] = record[0];
        }
    }
    write(&place.join("train_lables.json"), format!("{labels:?}").as_bytes());
    write(&place.join("test_lables.json"), b"[5,6,7,8,9,0,1,2,3,4]");
}

#[test]
fn cifar_out_of_the_package() {
    let (_folder, root) = root();
    package(&root);
    let colour = set("cifar10").unwrap().colour.as_ref().unwrap();
    let read = || -> shafer_data::Result<Vec<(String, Vec<u8>)>> {
        let mut files = Vec::new();
        read_png_batches(&root, colour, &mut |name, bytes| {
            files.push((name.to_owned(), bytes));
            Ok(())
        })?;
        Ok(files)
    };
    assert_eq!(read().unwrap(), cifar_files());

    let refused = |name: &str, contents: &[u8], expected: &str| {
        package(&root);
        fs::write(root.join(name), contents).unwrap();
        let error = read().unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    };
    let bad_labels = "train_lables.json: is not a JSON array of labels up to 255; it is damaged";
    refused("train_lables.json", b"[1, 2", bad_labels);
    refused("train_lables.json", b"[256]", bad_labels);
    refused("train_lables.json", b"{}", bad_labels);
    refused(
        "train_lables.json",
        b"[1]",
        "data_batch_1.png: has 10 images, but train_lables.json ends before label 10; it is damaged",
    );
    refused("data_batch_2.png", b"\x89PNG", "data_batch_2.png: cannot be decoded (");
    let narrow = png(1023, 1, png::ColorType::Rgb, &[0; 3069]);
    let expected = "test_batch.png: is not an RGB image with 1024 pixels a row";
    refused("test_batch.png", &narrow, expected);
    refused("test_batch.png", &png(1024, 1, png::ColorType::Grayscale, &[0; 1024]), expected);
    let good = fs::read(root.join("data_batch_3.png")).unwrap();
    refused("data_batch_3.png", &good[..good.len() / 2], "data_batch_3.png: cannot be decoded (");
    package(&root);
    fs::remove_file(root.join("test_lables.json")).unwrap();
    let error = read().unwrap_err().to_string();
    assert!(error.contains(": has no file test_lables.json; fetch the package again"), "{error}");
}

#[test]
fn damaged_binary_files() {
    let (_folder, root) = root();
    let refused = |name: &str, contents: &[u8], expected: &str| {
        for (name, bytes) in cifar_files() {
            write(&root.join("cifar10").join(name), &bytes);
        }
        write(&root.join("cifar10").join(name), contents);
        let cifar = set("cifar10").unwrap();
        let error =
            cifar.colour_images(Split::Test, from_ref(&root), None).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    };
    let size = "test_batch.bin: has 0 bytes, not a multiple of 3073 (a label and 32x32 pixels of 3 \
                bytes); it is damaged: fetch it again";
    refused("test_batch.bin", b"", size);
    refused("test_batch.bin", &record(1)[1..], "test_batch.bin: has 3072 bytes, not a multiple");
    let all: Vec<u8> = (0..10).flat_map(record).collect();
    let wrong = [&all[..], &record(10)].concat();
    refused("test_batch.bin", &wrong, "cifar10: image 10 has label 10, but there are 10 classes;");
    refused("test_batch.bin", &all[3073..], "cifar10: class airplane has no image; it is damaged");
}

/// miniImageNet as archives of the fixtures.
fn sharded(root: &Path) -> (Set, PathBuf) {
    let place = root.join("miniimagenet");
    for (number, names) in JPEGS.chunks(2).chain([&[][..]]).enumerate() {
        let files: Vec<(String, Vec<u8>)> = names
            .iter()
            .map(|name| (format!("{name}.jpg"), fixture(&format!("{name}.jpg"))))
            .chain([("other.jpg".to_owned(), b"not listed".to_vec())])
            .collect();
        let members: Vec<(&str, &[u8])> =
            files.iter().map(|(name, bytes)| (&name[..], &bytes[..])).collect();
        write(&place.join(format!("mini64_shard{number}.tar.gz")), &gzip(&tar(&members)));
    }
    write(&place.join("train.csv"), listing().as_bytes());
    (set("miniimagenet").unwrap().clone(), place)
}

/// Loose files and archives give the same images, with the lists of the paper and with `train.csv`.
#[test]
fn jpeg_from_folders_and_from_archives() {
    let (_folder, root) = root();
    loose(&root);
    let train = mini(Split::Train, &root, None).unwrap();
    assert_eq!(train.labels, [0, 1, 0, 1, 0, 1]);
    assert_eq!(train.classes, ["n0", "n1"]);
    let val = mini(Split::Val, &root, None).unwrap();
    assert_eq!(val.labels, [0, 1]);
    assert_eq!((val.image(0), val.image(1)), (train.image(2), train.image(1)));

    fs::remove_dir_all(root.join("miniimagenet")).unwrap();
    let (mut set, place) = sharded(&root);
    let shafer_data::dataset::ColourSource::Jpeg(files) = &mut set.colour.as_mut().unwrap().source
    else {
        unreachable!()
    };
    // Holds out 420 and progressive.
    files.held_out = 3;
    let images = |split| set.colour_images(split, from_ref(&root), None).unwrap();
    let (kept, held_out) = (images(Split::Train), images(Split::Val));
    assert_eq!(kept, train.select(&[1, 2, 4, 5]));
    assert_eq!(held_out, train.select(&[0, 3]));

    // The lists of the paper take precedence.
    write(&place.join("paper_train_small.csv"), listing().as_bytes());
    write(&place.join("paper_val_small.csv"), b"filename,label\n444.jpg,n0\n422.jpg,n1");
    assert_eq!(images(Split::Train), train);
    assert_eq!(images(Split::Val), val);
    let problems = set.find(from_ref(&root)).unwrap().verify();
    assert_eq!(problems.len(), 7);
    assert!(problems.iter().all(|check| check.problem.is_some()), "{problems:?}");

    fs::remove_file(place.join("mini64_shard2.tar.gz")).unwrap();
    let error = set.colour_images(Split::Train, from_ref(&root), None).unwrap_err().to_string();
    assert!(error.contains("miniimagenet: is incomplete: mini64_shard2.tar is not in"), "{error}");
}

#[track_caller]
fn jpegs_refused(change: impl Fn(&Path), split: Split, expected: &str) {
    let (_folder, root) = root();
    let place = loose(&root);
    change(&place);
    let error = mini(split, &root, None).unwrap_err().to_string();
    assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    assert!(error.len() < 600, "{error}");
}

#[test]
fn damaged_jpegs() {
    let at = |place: &Path| place.join("images/420.jpg");
    let jpeg = fixture("420.jpg");
    let hint = "; it is damaged: copy it again";
    for (contents, expected) in [
        (&b""[..], "420.jpg: is not a valid JPEG file ("),
        (b"<html>", "420.jpg: is not a valid JPEG file ("),
        (&jpeg[..100], "420.jpg: is not a valid JPEG file ("),
        (&jpeg[..jpeg.len() / 2], "420.jpg: is not a valid JPEG file ("),
    ] {
        jpegs_refused(|place| fs::write(at(place), contents).unwrap(), Split::Train, expected);
        jpegs_refused(|place| fs::write(at(place), contents).unwrap(), Split::Train, hint);
    }
    // The frame header is FF C0, length, precision, height, width.
    let frame = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    for (size, expected) in
        [([0, 83], "420.jpg: is 83x84, not 84x84;"), ([0xff; 2], "420.jpg: is ")]
    {
        let mut other = jpeg.clone();
        other[frame + 5..frame + 7].copy_from_slice(&size);
        jpegs_refused(|place| fs::write(at(place), &other).unwrap(), Split::Train, expected);
    }
    // Damage anywhere does not panic.
    let (_folder, root) = root();
    let place = loose(&root);
    for at_byte in (0..jpeg.len()).step_by(7) {
        let mut damaged = jpeg.clone();
        damaged[at_byte] ^= 0x55;
        fs::write(at(&place), damaged).unwrap();
        let _ = mini(Split::Train, &root, None);
    }
}

#[test]
fn lists_that_do_not_fit() {
    let train = |text: &'static str| {
        move |place: &Path| fs::write(place.join("paper_train_small.csv"), text).unwrap()
    };
    let val = |text: &'static str| {
        move |place: &Path| fs::write(place.join("paper_val_small.csv"), text).unwrap()
    };
    jpegs_refused(
        train(""),
        Split::Train,
        "paper_train_small.csv: does not begin with the line filename,label; each line",
    );
    jpegs_refused(
        train("filename,label\n"),
        Split::Train,
        "paper_train_small.csv: lists no image;",
    );
    jpegs_refused(
        train("filename,label\na.jpg\n"),
        Split::Train,
        "small.csv: line 2: `a.jpg` is no filename and label;",
    );
    jpegs_refused(
        train("filename,label\na.jpg,\n"),
        Split::Train,
        "small.csv: line 2: `a.jpg,` is no filename and label;",
    );
    jpegs_refused(
        train("filename,label\n\n..,n0\n"),
        Split::Train,
        "small.csv: line 3: `..,n0` is no filename and label;",
    );
    jpegs_refused(
        train("filename,label\n420.jpg,n0\nx/420.jpg,n1"),
        Split::Train,
        "small.csv: line 3: 420.jpg is listed twice; remove one",
    );
    jpegs_refused(
        train("filename,label\n420.jpg,n0\n422.jpg,n1\nabsent.jpg,n1\nabsent too.jpg,n1"),
        Split::Train,
        "small.csv: line 4: absent.jpg is not in ",
    );
    jpegs_refused(
        train("filename,label\n420.jpg,n0\n422.jpg,n1\nabsent.jpg,n1\nabsent too.jpg,n1"),
        Split::Train,
        "(2 of 4 images are missing); add the images or the archive with them",
    );
    jpegs_refused(
        val("filename,label\n420.jpg,n0"),
        Split::Val,
        "paper_val_small.csv: class n1 has no image;",
    );
    jpegs_refused(
        |place| fs::write(place.join("paper_val_small.csv"), b"filename,label\n\xff,n0").unwrap(),
        Split::Train,
        "paper_val_small.csv: is not UTF-8 text;",
    );
    jpegs_refused(
        |place| fs::remove_dir_all(place.join("images")).unwrap(),
        Split::Train,
        "miniimagenet: is incomplete: train.csv is not in ",
    );
    jpegs_refused(|_| (), Split::Test, "miniimagenet: has no split test; there are train and val");
}

/// Replaces a file by other contents of the same length, without changing its modification time.
fn replace_secretly(path: &Path) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let length = fs::read(path).unwrap().len();
    fs::write(path, vec![0; length]).unwrap();
    File::options().append(true).open(path).unwrap().set_modified(modified).unwrap();
}

#[test]
fn the_cache_is_used_and_rebuilt() {
    let (_folder, root) = root();
    let place = loose(&root);
    let cache = root.join("a/b");
    let file = cache.join("miniimagenet-train.images");
    let train = mini(Split::Train, &root, None).unwrap();
    assert_eq!(mini(Split::Train, &root, Some(&cache)).unwrap(), train);
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    let good = fs::read(&file).unwrap();

    // Damaged cache files are rebuilt.
    for at in (0..80).chain([good.len() / 2, good.len() - 1]) {
        let mut damaged = good.clone();
        damaged[at] ^= 4;
        fs::write(&file, &damaged).unwrap();
        assert_eq!(mini(Split::Train, &root, Some(&cache)).unwrap(), train, "byte {at}");
        assert_eq!(fs::read(&file).unwrap(), good, "byte {at}");
    }
    for damaged in [&good[..0], &good[..40], &good[..good.len() - 1], &[&good[..], b"x"].concat()] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(mini(Split::Train, &root, Some(&cache)).unwrap(), train);
        assert_eq!(fs::read(&file).unwrap(), good);
    }

    // Images are read from the cache, not decoded again.
    let image = place.join("images/420.jpg");
    replace_secretly(&image);
    assert_eq!(mini(Split::Train, &root, Some(&cache)).unwrap(), train);
    // With a newer modification time they are.
    File::options()
        .append(true)
        .open(&image)
        .unwrap()
        .set_modified(std::time::SystemTime::now())
        .unwrap();
    let error = mini(Split::Train, &root, Some(&cache)).unwrap_err().to_string();
    assert!(error.contains("420.jpg: is not a valid JPEG file"), "{error}");
    fs::write(&image, fixture("422.jpg")).unwrap();
    let changed = mini(Split::Train, &root, Some(&cache)).unwrap();
    assert_eq!(changed.image(0), train.image(1));

    // The cache folder cannot be created.
    let error = mini(Split::Val, &root, Some(&image.join("cache"))).unwrap_err().to_string();
    assert!(error.contains("420.jpg/cache: cannot create the folder: "), "{error}");
}
