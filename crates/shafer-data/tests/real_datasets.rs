//! Tests of the real data sets, if they are on the machine: see `shafer_testing::data`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use shafer_data::dataset::{ColourImages, Set, Split, Window, WindowShape, set, stratified, walk};

/// The set and its folder, if it exists. System folders are not searched, so that results are the same on
/// all machines with the folder.
fn real(name: &str) -> Option<(Set, [PathBuf; 1])> {
    let root = shafer_testing::data(name)?;
    Some((Set { system: Vec::new(), ..set(name).unwrap().clone() }, [root]))
}

#[track_caller]
fn verified(set: &Set, root: &[PathBuf]) {
    for check in set.find(root).unwrap().verify() {
        assert_eq!(check.problem, None);
    }
}

fn class_counts(labels: &[u8]) -> Vec<usize> {
    let mut counts = vec![0; 10];
    for &label in labels {
        counts[usize::from(label)] += 1;
    }
    counts
}

/// The counts published by the authors.
#[test]
fn mnist() {
    let Some((set, root)) = real("mnist") else { return };
    verified(&set, &root);
    let train = set.images(Split::Train, &root).unwrap();
    assert_eq!((train.len(), train.rows, train.columns), (60_000, 28, 28));
    let counts = class_counts(&train.labels);
    assert_eq!(counts, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]);
    assert_eq!(train.labels[..5], [5, 0, 4, 1, 9]);
    let test = set.images(Split::Test, &root).unwrap();
    let counts = class_counts(&test.labels);
    assert_eq!(counts, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);

    let tenth = stratified(&train.labels, 0.1, &mut StdRng::seed_from_u64(3)).unwrap();
    let counts = class_counts(&train.select(&tenth).labels);
    assert_eq!(counts, [592, 674, 596, 613, 584, 542, 592, 627, 585, 595]);
    let groups = set.images.as_ref().unwrap().groups.of_labels(&train.labels).unwrap();
    assert_eq!(groups.iter().map(|&group| u32::from(group)).sum::<u32>(), 30_508);
}

#[test]
fn fashion() {
    let Some((set, root)) = real("fashion") else { return };
    verified(&set, &root);
    let train = set.images(Split::Train, &root).unwrap();
    assert_eq!(class_counts(&train.labels), [6000; 10]);
    let test = set.images(Split::Test, &root).unwrap();
    assert_eq!(class_counts(&test.labels), [1000; 10]);
    let groups = set.images.as_ref().unwrap().groups.of_labels(&train.labels).unwrap();
    assert_eq!(groups.iter().map(|&group| u32::from(group)).sum::<u32>(), 30_000);
}

#[test]
fn notmnist() {
    let Some((set, root)) = real("notmnist") else { return };
    verified(&set, &root);
    let train = set.images(Split::Train, &root).unwrap();
    assert_eq!((train.len(), train.rows, train.columns), (18_724, 28, 28));
    assert!(class_counts(&train.labels).iter().all(|n| (1871..=1873).contains(n)));
    assert!(train.labels.is_sorted());
}

/// The images of each class, and the means of the channels over all images of a split.
fn statistics(images: &ColourImages) -> (Vec<usize>, [f64; 3]) {
    let mut counts = vec![0; images.classes.len()];
    for &label in &images.labels {
        counts[usize::from(label)] += 1;
    }
    let mut sums = [0_u64; 3];
    for pixel in images.pixels.chunks_exact(3) {
        sums.iter_mut().zip(pixel).for_each(|(sum, &value)| *sum += u64::from(value));
    }
    (counts, sums.map(|sum| sum as f64 * 3.0 / images.pixels.len() as f64))
}

/// The means over both splits are those of the images that Pillow 13.0.0 decodes: 120.1037, 114.8181, 103.3523.
#[test]
fn miniimagenet() {
    let Some((set, root)) = real("miniimagenet") else { return };
    verified(&set, &root);
    let cache = tempfile::tempdir().unwrap();
    let read = |split| set.colour_images(split, &root, Some(cache.path())).unwrap();
    let (train, val) = (read(Split::Train), read(Split::Val));
    assert_eq!((train.len(), val.len(), train.rows, train.columns), (36_480, 1920, 84, 84));
    let ((train_counts, train_means), (val_counts, val_means)) =
        (statistics(&train), statistics(&val));
    assert_eq!((train_counts, val_counts), (vec![570; 64], vec![30; 64]));
    assert_eq!((&train.classes[0][..], &train.classes), ("n01532829", &val.classes));
    for (channel, expected) in [120.103_65, 114.818_05, 103.352_32].into_iter().enumerate() {
        let mean = 0.95 * train_means[channel] + 0.05 * val_means[channel];
        // Decoders round differently: ours is 0.21 above Pillow in red, 0.1% of the range.
        assert!((mean - expected).abs() < 0.3, "channel {channel}: {mean}, not {expected}");
    }
    assert_eq!(read(Split::Train), train);
}

/// Counted with `cut -f2 FILE | sort -u | wc -l`.
const AGENTS: [(&str, [usize; 3]); 8] = [
    ("biwi_eth", [360, 250, 120]),
    ("biwi_hotel", [389, 311, 81]),
    ("crowds_zara01", [148, 125, 29]),
    ("crowds_zara02", [204, 171, 47]),
    ("crowds_zara03", [137, 106, 33]),
    ("students001", [415, 375, 96]),
    ("students003", [434, 364, 92]),
    ("uni_examples", [118, 96, 24]),
];

#[test]
fn ethucy() {
    let Some((set, root)) = real("ethucy") else { return };
    verified(&set, &root);
    let expected: BTreeMap<String, usize> = AGENTS
        .iter()
        .flat_map(|(scene, counts)| {
            ["", "_train", "_val"].map(|part| format!("{scene}{part}")).into_iter().zip(*counts)
        })
        .collect();
    let mut seen = BTreeMap::new();
    for fold in set.pedestrians.as_ref().unwrap().folds.keys() {
        for split in [Split::Train, Split::Val, Split::Test] {
            for scene in set.scenes(fold, split, &root).unwrap() {
                // No track has a gap.
                assert!(scene.tracks.iter().all(|track| track.stretches().count() == 1));
                assert_eq!(scene.repeated, 0);
                seen.insert(scene.name, scene.tracks.len());
            }
        }
    }
    // Neither zara03 nor the examples is a test scene of any fold.
    assert_eq!(seen.len(), 22);
    for (scene, agents) in seen {
        assert_eq!(agents, expected[&scene], "{scene}");
    }
}

/// The archive has a folder for each split of each fold, which match the catalogue.
#[test]
fn folds_are_those_of_the_archive() {
    let Some((set, root)) = real("ethucy") else { return };
    // Files fetched from a mirror have no folders.
    let Some(_) = shafer_testing::data("ethucy/ethucy_raw.tar.xz") else { return };
    let found = set.find(&root).unwrap();
    let mut folders: BTreeMap<String, Vec<String>> = BTreeMap::new();
    walk(found.place(), &|path| path.extension().is_some_and(|e| e == "txt"), &mut |path, _| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let folder = path.parent().unwrap().strip_prefix("raw").unwrap();
        folders.entry(folder.display().to_string()).or_default().push(name);
        Ok(())
    })
    .unwrap();
    for fold in set.pedestrians.as_ref().unwrap().folds.keys() {
        for split in [Split::Train, Split::Val, Split::Test] {
            let mut there = folders[&format!("{fold}/{split}")].clone();
            there.sort();
            let scenes = set.scenes(fold, split, &root).unwrap();
            assert_eq!(scenes.into_iter().map(|scene| scene.name).collect::<Vec<_>>(), there);
        }
    }
}

/// Counted from the files: a track of n positions has n - 8 with a whole history, and n - 13 windows with
/// one step of history and twelve of future; n - 19 of twenty positions.
#[test]
fn ethucy_windows() {
    let Some((set, root)) = real("ethucy") else { return };
    let windows = |fold: &str, split, shape: &WindowShape| -> usize {
        let scenes = set.scenes(fold, split, &root).unwrap();
        scenes.iter().map(|scene| scene.windows(shape).unwrap().len()).sum()
    };
    assert_eq!(windows("eth", Split::Train, &WindowShape::TRAINING), 37_796);
    assert_eq!(windows("eth", Split::Test, &WindowShape::TRAINING), 1248);
    // The windows of published results on ETH/UCY.
    let published =
        [("eth", 364), ("hotel", 1197), ("univ", 24_334), ("zara1", 2356), ("zara2", 5910)];
    for (fold, expected) in published {
        assert_eq!(windows(fold, Split::Test, &WindowShape::PUBLISHED), expected, "{fold}");
    }
    let scene = set.scene("biwi_eth_val", &root).unwrap();
    let of = |windows: &[Window]| {
        (windows.len(), windows.iter().filter(|window| !window.future.is_empty()).count())
    };
    assert_eq!(of(&scene.windows(&WindowShape::PAPER).unwrap()), (919, 816));
    let steps = scene.random_steps(50, &mut StdRng::seed_from_u64(0)).unwrap();
    assert_eq!(steps.len(), 50);
    let slice = scene.windows_at(&steps, &WindowShape::PAPER).unwrap();
    assert!((150..280).contains(&slice.len()), "{}", slice.len());
    assert!(slice.iter().all(|window| window.history.len() == 9));
    // The largest step of 0.4 s in tracks of nine positions or more.
    let all = scene.windows(&WindowShape::PAPER).unwrap();
    let fastest = all.iter().flat_map(|w| &w.history).map(|s| s[2].hypot(s[3])).fold(0.0, f64::max);
    assert!((fastest - 5.053_958_844_312_05).abs() < 1e-9, "{fastest}");
}
