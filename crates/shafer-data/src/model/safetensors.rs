//! Tensors of `.safetensors` files.

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};

use super::element::{not_float, read_floats};
use super::{At, TensorInfo};
use crate::safetensors::{Tensor, read_header};
use crate::{Dtype, Result};

pub(super) struct Safetensors {
    file: File,
    tensors: Vec<Tensor>,
}

impl Safetensors {
    pub(super) fn open(mut file: File, at: &At) -> Result<(Self, Vec<TensorInfo>)> {
        let tensors = read_header(&at.0, &mut file)?;
        let info = |tensor: &Tensor| TensorInfo {
            name: tensor.name.clone(),
            dtype: tensor.dtype.as_ref().map_or_else(|word| word.to_lowercase(), Dtype::to_string),
            shape: tensor.shape.clone(),
        };
        let infos = tensors.iter().map(info).collect();
        Ok((Self { file, tensors }, infos))
    }

    pub(super) fn load(&mut self, index: usize, what: &str, at: &At) -> Result<Vec<f32>> {
        let tensor = &self.tensors[index];
        let dtype = tensor.dtype.as_ref().map_err(|word| not_float(what, word, at))?;
        self.file.seek(SeekFrom::Start(tensor.start)).map_err(|e| at.io("read", e))?;
        let count = tensor.bytes as usize / dtype.size();
        read_floats(BufReader::new(&self.file), *dtype, count).map_err(|e| at.read(what, e))
    }
}
