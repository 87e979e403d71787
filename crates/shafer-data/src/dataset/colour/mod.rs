//! Colour images: CIFAR-10 and miniImageNet, and the loader that makes batches of them.
//!
//! [`Set::colour_images`](super::Set::colour_images) reads a split into [`ColourImages`]; a [`Loader`]
//! crops, resizes and flips them into batches, and [`Prefetch`] prepares the batches on a thread.

mod cache;
mod cifar;
mod csv_split;
mod image_transform;
mod images;
mod jpeg;
mod load;
mod loader;
mod png_batches;
mod prefetch;
mod random;
mod resize;

pub use image_transform::{Crop, ImageTransform, RandomResizedCrop};
pub use images::ColourImages;
pub use loader::{Batch, Loader, LoaderConfig};
pub use png_batches::read_png_batches;
pub use prefetch::Prefetch;
pub use resize::resize;

pub(crate) use jpeg::find_jpegs;
