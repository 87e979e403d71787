//! Data sets: the catalogue, finding and verifying files, reading them.
//!
//! [`sets`] is the catalogue. [`Set::find`] looks for a set in folders, [`Found::verify`] compares its
//! files with the catalogue's checksums. [`Set::images`] reads grey images, [`Set::colour_images`]
//! colour images, and [`Set::scenes`] pedestrians. A [`Loader`] makes batches of colour images.
//!
//! Nothing here downloads anything or reads environment variables: the folders are arguments.

mod catalogue;
mod checksum;
mod colour;
mod find;
mod groups;
mod idx;
mod images;
mod load;
mod packed;
mod png_folders;
mod scene;
mod subset;
mod tree;
mod verify;
mod windows;

pub use catalogue::{CifarFiles, ColourSet, ColourSource, JpegFiles, PngBatch};
pub use catalogue::{Client, DataFile, ImageFiles, ImageSet, Package, Pedestrians, PngSet, Set};
pub use catalogue::{set, sets};
pub use colour::{
    Batch, ColourImages, Crop, ImageTransform, Loader, LoaderConfig, Prefetch, RandomResizedCrop,
    read_png_batches, resize,
};
pub use find::Found;
pub use groups::Groups;
pub use idx::read_idx;
pub use images::Images;
pub use load::Split;
pub use png_folders::read_png_folders;
pub use scene::{FRAME_STEP, SECONDS_PER_STEP, Scene, Track};
pub use subset::{shuffle, stratified};
pub use tree::walk;
pub use verify::Check;
pub use windows::{Differences, State, Window, WindowShape, windows_of};
