//! Arbitrary bytes as files of data sets: IDX, scenes, and archives of PNG.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shafer_data::Result;
use shafer_data::dataset::{FRAME_STEP, Images, Scene, read_idx, read_png_folders, walk};
use shafer_fuzz::files::{file, line};

fuzz_target!(|bytes: &[u8]| {
    let whole = file("", bytes);
    let path = whole.path();
    // As images and as labels: at least one of the two is invalid.
    if let Err(error) = read_idx(path, path) {
        line(&error);
    } else {
        unreachable!("images have three axes, labels have one");
    }
    check_images(read_png_folders(path, &["A", "B"]));
    if let Err(error) = walk(path, &|_| true, &mut |_, _| Ok(())) {
        line(&error);
    }
    match Scene::parse("scene", bytes) {
        Ok(scene) => check_scene(&scene),
        Err(error) => _ = line(&error),
    }
    // The first byte is the number of labels, the rest is the file.
    let (&count, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let mut labels = vec![0, 0, 8, 1, 0, 0, 0, count];
    labels.extend(vec![0; usize::from(count)]);
    let images = file("", rest);
    let labels = file("", &labels);
    check_images(read_idx(images.path(), labels.path()));
});

fn check_images(images: Result<Images>) {
    match images {
        Ok(images) => {
            assert!(!images.is_empty());
            assert_eq!(images.pixels.len(), images.len() * images.rows * images.columns);
        }
        Err(error) => _ = line(&error),
    }
}

fn check_scene(scene: &Scene) {
    assert!(scene.tracks.is_sorted_by(|a, b| a.agent < b.agent));
    for track in &scene.tracks {
        assert_eq!(track.frames.len(), track.positions.len());
        assert!(track.frames.is_sorted_by(|a, b| a < b && (b - a) % FRAME_STEP == 0));
        assert!(track.positions.iter().flatten().all(|x| x.is_finite()));
        let mut end = 0;
        for stretch in track.stretches() {
            assert_eq!(stretch.start, end);
            end = stretch.end;
        }
        assert_eq!(end, track.frames.len());
    }
}
