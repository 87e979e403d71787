//! Model files: their tensors, and their last linear layer.

mod element;
mod heads;
mod onnx;
mod pickle;
mod pytorch;
mod request;
mod safetensors;

use std::{fmt, fs::File, io, path::Path};

pub use heads::{Doubt, HeadCandidate, HeadWeights, Orientation, heads};
pub use request::{BiasChoice, HeadRequest, load_head};

use self::element::Element;
use crate::{Error, Result};

/// A tensor in a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// The name.
    pub name: String,
    /// The element type, such as `f32`, `bf16` or `i64`.
    pub dtype: String,
    /// The shape. It is empty for a scalar.
    pub shape: Vec<usize>,
}

impl fmt::Display for TensorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.name.escape_debug(), self.dtype.escape_debug(), self.shape)
    }
}

/// A model file: `.safetensors`, `.onnx`, or a file of `torch.save`: `.pt`, `.pth`, `.bin` and `.ckpt`.
///
/// Opening a file reads the descriptions of the tensors, and never executes code in it. Sizes are checked
/// against the length of the file before memory is allocated.
///
/// ```
/// # fn main() -> shafer_data::Result<()> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/views.pt");
/// let mut model = shafer_data::ModelFile::open(path)?;
/// let tensor = &model.tensors()[0];
/// assert_eq!(tensor.name, "transposed.weight");
/// assert_eq!(tensor.dtype, "f32");
/// assert_eq!(tensor.shape, [5, 8]);
/// assert_eq!(model.load("transposed.weight")?.len(), 40);
/// # Ok(())
/// # }
/// ```
pub struct ModelFile {
    at: At,
    tensors: Vec<TensorInfo>,
    kind: Kind,
}

enum Kind {
    Safetensors(safetensors::Safetensors),
    Pytorch(pytorch::Pytorch),
    Onnx(onnx::Onnx),
}

impl ModelFile {
    /// Opens a file. The extension decides the format.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let at = At(path.display().to_string());
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
        // Checked first: opening a directory can succeed.
        let open = || -> Result<(File, u64)> {
            let data = std::fs::metadata(path).map_err(|e| at.io("open", e))?;
            if !data.is_file() {
                return Err(at.request("not a file; give the path of a model file"));
            }
            if data.len() == 0 {
                return Err(at.format("the file is empty", "copy or download it again"));
            }
            let file = File::open(path).map_err(|e| at.io("open", e))?;
            Ok((file, data.len()))
        };
        let (kind, tensors) = match ending.as_str() {
            "safetensors" => {
                let (file, _) = open()?;
                let (file, tensors) = safetensors::Safetensors::open(file, &at)?;
                (Kind::Safetensors(file), tensors)
            }
            "pt" | "pth" | "bin" | "ckpt" => {
                let (file, length) = open()?;
                let (file, tensors) = pytorch::Pytorch::open(file, length, &at)?;
                (Kind::Pytorch(file), tensors)
            }
            "onnx" => {
                let (file, length) = open()?;
                let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
                let (file, tensors) = onnx::Onnx::open(file, length, folder, &at)?;
                (Kind::Onnx(file), tensors)
            }
            _ => {
                // A missing file is reported before an unknown extension.
                open()?;
                return Err(at.request(
                    "cannot tell what kind of model it is; \
                     its ending must be .safetensors, .pt, .pth, .bin, .ckpt or .onnx",
                ));
            }
        };
        Ok(Self { at, tensors, kind })
    }

    /// The tensors in the file, in its order. Their data are not loaded.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The values of a tensor in C order, whatever its strides in the file.
    ///
    /// Floats of other widths are converted. Other types are an error.
    pub fn load(&mut self, name: &str) -> Result<Vec<f32>> {
        let Some(index) = self.tensors.iter().position(|t| t.name == name) else {
            return Err(self.at.request(format!("no tensor is named `{}`", shown(name))));
        };
        let what = format!("tensor `{}`", shown(name));
        match &mut self.kind {
            Kind::Safetensors(file) => file.load(index, &what, &self.at),
            Kind::Pytorch(file) => file.load(index, &what, &self.at),
            Kind::Onnx(file) => file.load(index, &what, &self.at),
        }
    }
}

impl fmt::Debug for ModelFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelFile")
            .field("file", &self.at.0)
            .field("tensors", &self.tensors)
            .finish_non_exhaustive()
    }
}

/// Makes errors that name the file.
struct At(String);

impl At {
    fn io(&self, action: &'static str, source: io::Error) -> Error {
        Error::Io { file: self.0.clone(), action, source }
    }

    fn format(&self, problem: impl Into<String>, hint: &'static str) -> Error {
        Error::Format { file: self.0.clone(), problem: problem.into(), hint }
    }

    fn request(&self, problem: impl Into<String>) -> Error {
        Error::Request { file: self.0.clone(), problem: problem.into() }
    }

    /// The error of a failed read within the length of the file.
    fn read(&self, what: &str, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::UnexpectedEof {
            self.format(format!("{what} ends early"), TRUNCATED)
        } else {
            self.io("read", source)
        }
    }
}

const TRUNCATED: &str = "the file is truncated or broken; copy or download it again";

/// A name from a file, escaped and shortened for a message.
fn shown(name: &str) -> String {
    let mut chars = name.chars();
    let mut shown: String = chars.by_ref().take(80).flat_map(char::escape_debug).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

fn tensor_info(name: String, element: Element, shape: Vec<usize>) -> TensorInfo {
    TensorInfo { name, dtype: element.name().to_owned(), shape }
}

/// The size of a tensor in bytes, or `None` if it exceeds 2^63.
fn byte_length(shape: &[usize], element_size: usize) -> Option<u64> {
    let mut bytes = element_size as u64;
    // An axis of length 0 makes the size 0 even if the other axes overflow.
    if shape.contains(&0) {
        return Some(0);
    }
    for &n in shape {
        bytes = bytes.checked_mul(n as u64)?;
    }
    i64::try_from(bytes).is_ok().then_some(bytes)
}
