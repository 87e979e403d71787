//! The paper's experiments with images: what a training leaves behind, and what follows from it.
//!
//! A training gives a [`SeedRecord`]; [`ImageResults::aggregate`] makes one file of numbers of all of
//! them; figures and reports are functions of that file and of nothing else.

mod aggregate;
mod image;
mod measured;
mod results;
mod seed_record;
mod statistics;
#[cfg(test)]
pub(crate) mod synthetic;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use aggregate::Meta;
pub(crate) use image::GreyImage;
pub(crate) use results::{
    BOTH, Bars, Curve, Evolution, Exemplar, Final, Gains, ImageResults, Improvement, MethodName,
    QueryBars, Reduced, Table, TargetFrom, Training, VERSION,
};
pub(crate) use seed_record::{Checkpoint, Judgement, LatentClass, Losses, SeedRecord};
pub(crate) use statistics::{Gain, Summary};
pub(crate) use table::table;
