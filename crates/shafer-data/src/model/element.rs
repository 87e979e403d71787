//! Types of elements, and bytes to `f32`.

use std::io::{self, Read};

use half::{bf16, f16};

use super::At;
use crate::{Dtype, Error, Result};

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Float(Dtype),
    /// An unsupported type, which is only listed: its name and its size in bytes.
    Other(&'static str, usize),
}

impl Element {
    pub(super) const F32: Self = Self::Float(Dtype::F32);
    pub(super) const F64: Self = Self::Float(Dtype::F64);
    pub(super) const F16: Self = Self::Float(Dtype::F16);
    pub(super) const BF16: Self = Self::Float(Dtype::Bf16);

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Other(name, _) => name,
        }
    }

    pub(super) fn size(self) -> usize {
        match self {
            Self::Float(dtype) => dtype.size(),
            Self::Other(_, size) => size,
        }
    }

    pub(super) fn float(self, what: &str, at: &At) -> Result<Dtype> {
        match self {
            Self::Float(dtype) => Ok(dtype),
            Self::Other(name, _) => Err(not_float(what, name, at)),
        }
    }
}

pub(super) fn not_float(what: &str, name: &str, at: &At) -> Error {
    at.request(format!("{what} is of type {name}; only f16, bf16, f32 and f64 can be loaded"))
}

/// Reads `count` little-endian elements. The caller has checked the length.
pub(super) fn read_floats(
    mut reader: impl Read,
    dtype: Dtype,
    count: usize,
) -> io::Result<Vec<f32>> {
    // In blocks, so that bytes and values are not both in memory.
    const BLOCK: usize = 1 << 16;
    let mut block = vec![0; BLOCK.min(count.saturating_mul(dtype.size()))];
    let mut values = Vec::new();
    values.try_reserve_exact(count)?;
    while values.len() < count {
        let n = (BLOCK / dtype.size()).min(count - values.len());
        let bytes = &mut block[..n * dtype.size()];
        reader.read_exact(bytes)?;
        convert(bytes, dtype, &mut values);
    }
    Ok(values)
}

fn convert(bytes: &[u8], dtype: Dtype, to: &mut Vec<f32>) {
    match dtype {
        Dtype::F16 => {
            to.extend(bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b).to_f32()));
        }
        Dtype::Bf16 => {
            to.extend(bytes.as_chunks().0.iter().map(|&b| bf16::from_le_bytes(b).to_f32()));
        }
        Dtype::F32 => to.extend(bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b))),
        Dtype::F64 => to.extend(bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b) as f32)),
    }
}
