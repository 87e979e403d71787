//! Data sets: what is known of them, where they are, and what is in them.
//!
//! [`sets`] is the catalogue. [`Set::find`] looks for a set in folders, [`Found::verify`] compares it
//! with the catalogue's checksums, [`Set::images`] and [`Set::scenes`] read it. Nothing is fetched
//! here, and no variable of the environment is read: where to look is an argument.

mod catalogue;
mod checksum;
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

pub use catalogue::{Client, DataFile, ImageFiles, ImageSet, Package, Pedestrians, PngSet, Set};
pub use catalogue::{set, sets};
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
