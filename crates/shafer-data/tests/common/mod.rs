//! Writers of small files in the formats of data sets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test program needs some of it")]

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// An IDX file of unsigned bytes.
pub(crate) fn idx(lengths: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0x08, lengths.len() as u8];
    bytes.extend(lengths.iter().flat_map(|length| length.to_be_bytes()));
    bytes.extend(values);
    bytes
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, contents) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, *contents).unwrap();
    }
    builder.into_inner().unwrap()
}

pub(crate) fn png(columns: u32, rows: u32, color: png::ColorType, pixels: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, columns, rows);
    encoder.set_color(color);
    encoder.write_header().unwrap().write_image_data(pixels).unwrap();
    bytes
}
