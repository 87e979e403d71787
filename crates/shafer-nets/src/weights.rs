//! Named tensors, and their safetensors form.
//!
//! Linear layers are stored outputs x inputs, everything else as it is: PyTorch's layout, which
//! `shafer heads` and other tools expect.

use std::collections::{BTreeMap, HashMap};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor, TensorData};
use half::f16;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::device::cpu;
use crate::{Error, Result};

/// The precision of stored weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 32 bits, as the networks compute.
    Single,
    /// 16 bits: half the size and three significant digits, enough for figures and sampling.
    Half,
}

/// The metadata key of our description, which is JSON.
const DESCRIPTION: &str = "shafer";

/// Named tensors.
#[derive(Debug, Default)]
pub(crate) struct Tensors(BTreeMap<String, Stored>);

/// A tensor in the layout of files.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
    /// Whether the optimiser changes it.
    pub(crate) trained: bool,
}

/// A tensor of these values, without gradients.
pub(crate) fn tensor<const D: usize>(
    values: Vec<f32>,
    shape: [usize; D],
    device: &Device,
) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// The values of a tensor.
pub(crate) fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    let data = tensor.into_data();
    // Types other than f32 are converted element by element.
    data.as_slice().map_or_else(|_| data.iter().collect(), <[f32]>::to_vec)
}

/// Converts between our layout and that of files, in both directions.
fn transposed<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    if D == 2 { tensor.swap_dims(0, 1) } else { tensor }
}

/// Every parameter of a network by name, in the layout of files.
pub(crate) fn parameters<N: Module>(network: &N) -> Vec<(String, Stored)> {
    let mut collector = Collector::default();
    network.visit(&mut collector);
    collector.parameters
}

impl Tensors {
    /// Adds a tensor.
    pub(crate) fn insert(&mut self, name: String, tensor: Stored) {
        self.0.insert(name, tensor);
    }

    /// Removes the tensor of this name, which must have this shape.
    pub(crate) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let Some(found) = self.0.remove(name) else {
            return Err(Error::format(format!("the tensor {name} is missing")));
        };
        if found.shape != shape {
            let found = found.shape;
            return Err(Error::format(format!(
                "the tensor {name} is {found:?}, but must be {shape:?}"
            )));
        }
        Ok(found.values)
    }

    /// Every parameter of a network.
    pub(crate) fn of<N: Module>(network: &N) -> Self {
        Self(parameters(network).into_iter().collect())
    }

    /// A network with exactly these parameters.
    ///
    /// `size` is their number according to the description. It is compared first, so that a file cannot
    /// demand more memory than its own size.
    pub(crate) fn into_network<N: Module>(
        mut self,
        size: usize,
        network: impl FnOnce() -> N,
    ) -> Result<N> {
        let found: usize = self.0.values().map(|tensor| tensor.values.len()).sum();
        if found != size {
            return Err(Error::format(format!(
                "the file has {found} parameters, but its description says {size}",
            )));
        }
        let network = self.take_all(network())?;
        self.finish().map(|()| network)
    }

    /// Replaces every parameter of a network.
    pub(crate) fn take_all<N: Module>(&mut self, network: N) -> Result<N> {
        let mut loader = Loader { path: Path::default(), tensors: self, outcome: Ok(()) };
        let network = network.map(&mut loader);
        loader.outcome.map(|()| network)
    }

    /// Checks that every tensor has been taken.
    pub(crate) fn finish(self) -> Result<()> {
        match self.0.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(Error::format(format!("the tensor {name} is not expected"))),
        }
    }

    /// The safetensors form, with a description in its metadata.
    pub(crate) fn to_bytes<M: Serialize>(
        &self,
        precision: Precision,
        description: &M,
    ) -> Result<Vec<u8>> {
        let description =
            serde_json::to_string(description).map_err(|e| Error::format(e.to_string()))?;
        // One entry: the order of more would be random.
        let metadata = HashMap::from([(DESCRIPTION.to_owned(), description)]);
        let encoded: Vec<(&String, &Stored, Vec<u8>)> = self
            .0
            .iter()
            .map(|(name, stored)| (name, stored, encode(&stored.values, precision)))
            .collect();
        let dtype = match precision {
            Precision::Single => Dtype::F32,
            Precision::Half => Dtype::F16,
        };
        let views = encoded
            .iter()
            .map(|(name, stored, bytes)| {
                Ok((*name, TensorView::new(dtype, stored.shape.clone(), bytes)?))
            })
            .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>();
        views
            .and_then(|views| safetensors::serialize(views, Some(metadata)))
            .map_err(|e| Error::format(format!("cannot be written as safetensors: {e}")))
    }

    /// Reads the safetensors form.
    pub(crate) fn from_bytes<M: DeserializeOwned>(bytes: &[u8]) -> Result<(Self, M)> {
        let broken =
            |e: &dyn std::fmt::Display| Error::format(format!("not a safetensors file: {e}"));
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| broken(&e))?;
        let file = SafeTensors::deserialize(bytes).map_err(|e| broken(&e))?;
        let description =
            header.metadata().as_ref().and_then(|metadata| metadata.get(DESCRIPTION)).ok_or_else(
                || {
                    Error::format(
                        "the file has no description of shafer: it was written by another program",
                    )
                },
            )?;
        let description = serde_json::from_str(description).map_err(|e| {
            Error::format(format!("the file is of another kind or version than expected: {e}"))
        })?;
        let tensors = file
            .iter()
            .map(|(name, view)| {
                let values = decode(view.data(), view.dtype()).ok_or_else(|| {
                    Error::format(format!(
                        "the tensor {name} is {:?}, but must be F32 or F16",
                        view.dtype()
                    ))
                })?;
                Ok((
                    name.to_owned(),
                    Stored { shape: view.shape().to_vec(), values, trained: false },
                ))
            })
            .collect::<Result<_>>()?;
        Ok((Self(tensors), description))
    }
}

fn encode(values: &[f32], precision: Precision) -> Vec<u8> {
    match precision {
        Precision::Single => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Precision::Half => values.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect(),
    }
}

fn decode(bytes: &[u8], dtype: Dtype) -> Option<Vec<f32>> {
    match dtype {
        Dtype::F32 => {
            Some(bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
        }
        Dtype::F16 => Some(
            bytes
                .as_chunks::<2>()
                .0
                .iter()
                .map(|&bytes| f16::from_le_bytes(bytes).to_f32())
                .collect(),
        ),
        _ => None,
    }
}

/// The name of the visited parameter.
#[derive(Debug, Default)]
struct Path(Vec<String>);

impl Path {
    /// The variant of an enum is in the configuration and not part of the name.
    fn enter(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.push(name.to_owned());
        }
    }

    fn exit(&mut self, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.pop();
        }
    }

    fn name(&self) -> String {
        self.0.join(".")
    }
}

#[derive(Default)]
struct Collector {
    path: Path,
    parameters: Vec<(String, Stored)>,
}

impl ModuleVisitor for Collector {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.enter(name, container_type);
    }

    fn exit_module(&mut self, _name: &str, container_type: &str) {
        self.path.exit(container_type);
    }

    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
        let tensor = parameter.val();
        let trained = tensor.is_require_grad();
        let tensor = transposed(tensor.inner());
        let shape = tensor.dims().to_vec();
        self.parameters.push((self.path.name(), Stored { shape, values: host(tensor), trained }));
    }
}

struct Loader<'a> {
    path: Path,
    tensors: &'a mut Tensors,
    outcome: Result<()>,
}

impl ModuleMapper for Loader<'_> {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.enter(name, container_type);
    }

    fn exit_module(&mut self, _name: &str, container_type: &str) {
        self.path.exit(container_type);
    }

    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, before, mapper) = parameter.consume();
        let shape = transposed(before.clone()).dims();
        let tensor = match self.tensors.take(&self.path.name(), &shape) {
            Ok(values) => {
                // By way of the host, so that what is transposed is not a view: optimisers change
                // parameters in place.
                let data = transposed(tensor(values, shape, &cpu())).into_data();
                let trained = before.is_require_grad();
                Tensor::from_data(data, &before.device()).set_require_grad(trained)
            }
            Err(error) => {
                self.outcome = Err(error);
                before
            }
        };
        Param::from_mapped_value(id, tensor, mapper)
    }
}
