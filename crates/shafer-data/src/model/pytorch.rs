//! The format of `torch.save` since version 1.6: a zip archive with a pickle that describes the tensors
//! (`data.pkl`), and one member per storage (`data/0`, `data/1`, ...).

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
};

use zip::{
    CompressionMethod, ZipArchive,
    read::{ZipFile, ZipReadOptions},
    result::ZipError,
};

use super::{
    At, TRUNCATED, TensorInfo,
    element::{Element, read_floats},
    pickle::{self, Id, Tree, Value},
    shown, tensor_info,
};
use crate::array::MAX_RANK;
use crate::{Error, Result};

/// The longest pickle. Those of the largest checkpoints have a few megabytes.
const MAX_PICKLE: u64 = 64 << 20;
const MAX_DEPTH: usize = 64;
const MAX_TENSORS: usize = 200_000;
const MAX_NAME: usize = 1024;
/// The limit of the bytes of all names, storages and shapes. A small pickle can have one tensor under any
/// number of long names.
const MAX_DESCRIPTIONS: usize = 64 << 20;

const RESAVE: &str =
    "save the weights again: torch.save(model.state_dict(), PATH), or as safetensors";

/// The first bytes of a file written before version 1.6: a pickled magic number.
const LEGACY: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";

pub(super) struct Pytorch {
    archive: Archive,
    views: Vec<View>,
}

struct Archive {
    zip: ZipArchive<BufReader<File>>,
    /// The label of the file.
    length: u64,
    /// The folder of all members, with a trailing slash.
    folder: String,
    /// Whether members have valid checksums. `torch.save` can omit them, and then writes wrong ones.
    checked: bool,
}

/// A tensor: a strided view of a storage.
struct View {
    element: Element,
    key: String,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

impl Pytorch {
    pub(super) fn open(mut file: File, length: u64, at: &At) -> Result<(Self, Vec<TensorInfo>)> {
        let mut magic = Vec::new();
        file.by_ref()
            .take(LEGACY.len() as u64)
            .read_to_end(&mut magic)
            .and_then(|_| file.seek(SeekFrom::Start(0)))
            .map_err(|e| at.io("read", e))?;
        if magic == LEGACY {
            return Err(at.format("written in the format of PyTorch before 1.6", RESAVE));
        }
        if magic.starts_with(b"\x80") {
            return Err(at.format("a pickle without the archive that torch.save writes", RESAVE));
        }
        if !magic.starts_with(b"PK\x03\x04") {
            return Err(at.format("not a file that torch.save wrote: it is no zip archive", RESAVE));
        }
        let zip = ZipArchive::new(BufReader::new(file)).map_err(|e| zip_error(e, at))?;
        let mut folders = zip.file_names().filter_map(|name| {
            let name = name.ok()?;
            let folder = name.strip_suffix("data.pkl")?;
            let top = folder.is_empty() || folder.find('/') == Some(folder.len() - 1);
            top.then(|| folder.to_owned())
        });
        let folder = match (folders.next(), folders.next()) {
            (Some(folder), None) => folder,
            (None, _) => {
                return Err(at.format("a zip archive without the data.pkl of torch.save", RESAVE));
            }
            _ => return Err(at.format("a zip archive with more than one data.pkl", RESAVE)),
        };
        drop(folders);
        let mut archive = Archive { zip, length, folder, checked: true };
        archive.checked = archive.read("version", 64, at).is_ok();

        if archive.zip.index_for_name(&format!("{}byteorder", archive.folder)).is_some() {
            let order = archive.read("byteorder", 16, at)?;
            if order.trim_ascii() != b"little" {
                return Err(at.format(
                    format!("its byte order is `{}`", shown(&String::from_utf8_lossy(&order))),
                    "only little-endian files are read: save it again on such a machine",
                ));
            }
        }

        let pickle = archive.read("data.pkl", MAX_PICKLE, at)?;
        let bad = |problem| at.format(problem, RESAVE);
        let tree = pickle::read(&pickle).map_err(bad)?;
        let mut walk = Walk {
            tree: &tree,
            visits: 0,
            names: HashSet::new(),
            found: Vec::new(),
            bytes: 0,
            opaque: None,
        };
        walk.root().map_err(bad)?;
        if walk.found.is_empty() {
            return Err(bad(match walk.opaque {
                Some(what) => format!("it holds a pickled {} and no tensors", shown(&what)),
                None => "it holds no tensors".to_owned(),
            }));
        }
        let (tensors, views) = walk
            .found
            .into_iter()
            .map(|(name, view)| (tensor_info(name, view.element, view.shape.clone()), view))
            .unzip();
        Ok((Self { archive, views }, tensors))
    }

    pub(super) fn load(&mut self, index: usize, what: &str, at: &At) -> Result<Vec<f32>> {
        let view = &self.views[index];
        let dtype = view.element.float(what, at)?;
        let (elements, span) = view.extent().unwrap_or((usize::MAX, usize::MAX));
        if elements == 0 {
            return Ok(Vec::new());
        }
        let mut member = self.archive.open(&format!("data/{}", view.key), at)?;
        let held = member.size() / dtype.size() as u64;
        if (view.offset as u64).checked_add(span as u64).is_none_or(|end| end > held) {
            return Err(at.format(
                format!("{what} needs more than the {held} elements that its storage has"),
                TRUNCATED,
            ));
        }
        // A view can repeat elements, so its size is not bounded by that of its storage.
        if elements as u64 > held {
            return Err(at.request(format!(
                "{what} is expanded: it repeats the elements of its storage; \
                 call .contiguous() before saving"
            )));
        }
        let skipped = view.offset as u64 * dtype.size() as u64;
        let values = io::copy(&mut member.by_ref().take(skipped), &mut io::sink())
            .and_then(|_| read_floats(&mut member, dtype, span))
            .map_err(|e| at.read(what, e))?;
        to_end(&mut member).map_err(|e| at.format(format!("{what}: {e}"), TRUNCATED))?;
        Ok(if view.is_contiguous() { values } else { view.gather(&values, elements) })
    }
}

impl Archive {
    /// The bytes of a small member.
    fn read(&mut self, name: &str, limit: u64, at: &At) -> Result<Vec<u8>> {
        let mut member = self.open(name, at)?;
        let size = member.size();
        if size > limit {
            return Err(at.format(
                format!("its {name} has {size} bytes, more than {limit}"),
                "this is no model, or a broken one",
            ));
        }
        let mut bytes = Vec::with_capacity(size as usize);
        member
            .by_ref()
            .take(size)
            .read_to_end(&mut bytes)
            .and_then(|_| to_end(&mut member))
            .map_err(|e| at.format(format!("its {name} cannot be read: {e}"), TRUNCATED))?;
        Ok(bytes)
    }

    fn open(&mut self, name: &str, at: &At) -> Result<ZipFile<'_, BufReader<File>>> {
        let length = self.length;
        let name_in_archive = format!("{}{name}", self.folder);
        let options = ZipReadOptions::new().ignore_crc32(!self.checked);
        let member =
            self.zip.by_name_with_options(&name_in_archive, options).map_err(|e| match e {
                ZipError::FileNotFound => {
                    at.format(format!("its member {} is missing", shown(name)), TRUNCATED)
                }
                e => zip_error(e, at),
            })?;
        if member.compression() != CompressionMethod::Stored {
            return Err(at.format(
                format!("its member {} is compressed, which torch.save never does", shown(name)),
                RESAVE,
            ));
        }
        if member.size() > length {
            return Err(at.format(
                format!(
                    "its member {} is said to have {} bytes, more than the file",
                    shown(name),
                    member.size()
                ),
                TRUNCATED,
            ));
        }
        Ok(member)
    }
}

/// Reads the rest of a member, which verifies its checksum.
fn to_end(member: &mut impl Read) -> io::Result<()> {
    io::copy(member, &mut io::sink()).map(drop)
}

fn zip_error(error: ZipError, at: &At) -> Error {
    match error {
        ZipError::Io(e) if e.kind() != io::ErrorKind::UnexpectedEof => at.io("read", e),
        e => at.format(format!("the zip archive cannot be read: {e}"), TRUNCATED),
    }
}

impl View {
    /// The number of elements, and the length of their span in the storage.
    fn extent(&self) -> Option<(usize, usize)> {
        if self.shape.contains(&0) {
            return Some((0, 0));
        }
        let mut elements = 1_usize;
        let mut last = 0_usize;
        for (&n, &stride) in self.shape.iter().zip(&self.strides) {
            elements = elements.checked_mul(n)?;
            last = last.checked_add((n - 1).checked_mul(stride)?)?;
        }
        Some((elements, last.checked_add(1)?))
    }

    fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        self.shape.iter().zip(&self.strides).rev().all(|(&n, &stride)| {
            let fits = n == 1 || stride == expected;
            expected *= n;
            fits
        })
    }

    /// The elements in C order, from the span of the storage.
    fn gather(&self, values: &[f32], elements: usize) -> Vec<f32> {
        let mut gathered = Vec::with_capacity(elements);
        let mut index = vec![0; self.shape.len()];
        let mut place = 0;
        loop {
            gathered.push(values[place]);
            // Increments the index, the last axis fastest.
            let mut axis = self.shape.len();
            loop {
                if axis == 0 {
                    return gathered;
                }
                axis -= 1;
                index[axis] += 1;
                place += self.strides[axis];
                if index[axis] < self.shape[axis] {
                    break;
                }
                place -= self.shape[axis] * self.strides[axis];
                index[axis] = 0;
            }
        }
    }
}

/// Finds the tensors in a tree of values.
struct Walk<'t> {
    tree: &'t Tree<'t>,
    visits: usize,
    names: HashSet<String>,
    found: Vec<(String, View)>,
    /// The bytes of the descriptions so far.
    bytes: usize,
    /// The first object of an unknown class.
    opaque: Option<String>,
}

impl Walk<'_> {
    /// Keys under which training scripts store a state dictionary. They are dropped from names.
    const WRAPPERS: [&'static str; 5] =
        ["state_dict", "model_state_dict", "model", "module", "net"];

    fn root(&mut self) -> std::result::Result<(), String> {
        let root = self.tree.root();
        if let Value::Dict(items) = self.tree.get(root) {
            let wrapped = |wrapper| {
                items.iter().find(|&&(key, value)| {
                    self.tree.text(key) == Some(wrapper)
                        && matches!(self.tree.get(value), Value::Dict(_) | Value::Called { .. })
                        && self.tensor_call(value).is_none()
                })
            };
            if let Some(&(wrapper, inner)) = Self::WRAPPERS.into_iter().find_map(wrapped) {
                self.visit(inner, &mut String::new(), 1)?;
                for &(key, value) in items {
                    if key != wrapper {
                        self.child(key, value, &mut String::new(), 1)?;
                    }
                }
                return Ok(());
            }
        }
        self.visit(root, &mut String::new(), 0)
    }

    fn visit(
        &mut self,
        id: Id,
        name: &mut String,
        depth: usize,
    ) -> std::result::Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("the pickle nests values more than {MAX_DEPTH} deep"));
        }
        // Values can be shared, so there can be more paths than values.
        self.visits += 1;
        if self.visits > pickle::MAX_VALUES {
            return Err("the pickle repeats its values too often".to_owned());
        }
        let tree = self.tree;
        match tree.get(id) {
            Value::Dict(items) => {
                for &(key, value) in items {
                    self.child(key, value, name, depth)?;
                }
            }
            Value::Sequence(items) => {
                for (i, &value) in items.iter().enumerate() {
                    self.named(&i.to_string(), value, name, depth)?;
                }
            }
            Value::Called { function, state, .. } => {
                if let Some((kind, arguments)) = self.tensor_call(id) {
                    match kind {
                        TensorCall::Rebuild { dtype } => {
                            let view = self
                                .view(arguments, dtype)
                                .map_err(|problem| format!("tensor `{}` {problem}", shown(name)))?;
                            self.add(name, view)?;
                        }
                        TensorCall::Wrap => {
                            if let Some(&inner) = tree.sequence(arguments).and_then(|a| a.first()) {
                                self.visit(inner, name, depth + 1)?;
                            }
                        }
                        TensorCall::Subclass => {
                            self.subclass(arguments, name)?;
                        }
                    }
                } else if let Some(state) = state {
                    self.object(*state, name, depth)?;
                } else {
                    self.note(*function);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The parts of an object of an unknown class, such as a module.
    fn object(
        &mut self,
        state: Id,
        name: &mut String,
        depth: usize,
    ) -> std::result::Result<(), String> {
        const PARTS: [&str; 3] = ["_parameters", "_buffers", "_modules"];
        let tree = self.tree;
        let Value::Dict(items) = tree.get(state) else {
            return self.visit(state, name, depth + 1);
        };
        let part = |key: Id| tree.text(key).is_some_and(|key| PARTS.contains(&key));
        if !items.iter().any(|&(key, _)| part(key)) {
            return self.visit(state, name, depth + 1);
        }
        // The rest of a module is flags, hooks and references to other modules.
        for &(key, value) in items {
            if part(key) {
                self.visit(value, name, depth + 1)?;
            }
        }
        Ok(())
    }

    fn child(
        &mut self,
        key: Id,
        value: Id,
        name: &mut String,
        depth: usize,
    ) -> std::result::Result<(), String> {
        let tree = self.tree;
        match (tree.text(key), tree.int(key)) {
            (Some(key), _) => self.named(key, value, name, depth),
            (_, Some(key)) => self.named(&key.to_string(), value, name, depth),
            // Other keys have no name.
            _ => Ok(()),
        }
    }

    fn named(
        &mut self,
        key: &str,
        value: Id,
        name: &mut String,
        depth: usize,
    ) -> std::result::Result<(), String> {
        let length = name.len();
        if length + key.len() > MAX_NAME {
            return Err(format!("the pickle has a name of more than {MAX_NAME} bytes"));
        }
        if length > 0 {
            name.push('.');
        }
        name.push_str(key);
        let result = self.visit(value, name, depth + 1);
        name.truncate(length);
        result
    }

    fn add(&mut self, name: &str, view: View) -> std::result::Result<(), String> {
        if self.found.len() == MAX_TENSORS {
            return Err(format!("the pickle holds more than {MAX_TENSORS} tensors"));
        }
        self.bytes += name.len() + view.key.len() + size_of_val(&view.shape[..]);
        if self.bytes > MAX_DESCRIPTIONS {
            return Err(format!("the pickle has more than {MAX_DESCRIPTIONS} bytes of names"));
        }
        // A duplicate name is a shared tensor, or that of another wrapper. The first is kept.
        if self.names.insert(name.to_owned()) {
            self.found.push((name.to_owned(), view));
        }
        Ok(())
    }

    fn note(&mut self, function: Id) {
        if self.opaque.is_none()
            && let Some((module, name)) = self.tree.global(function)
        {
            self.opaque = Some(format!("{module}.{name}"));
        }
    }

    /// Whether a value is one of the calls that make tensors.
    fn tensor_call(&self, id: Id) -> Option<(TensorCall, Id)> {
        let Value::Called { function, arguments, .. } = self.tree.get(id) else { return None };
        let kind = match self.tree.global(*function)? {
            ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => {
                TensorCall::Rebuild { dtype: None }
            }
            ("torch._utils", "_rebuild_tensor_v3") => TensorCall::Rebuild { dtype: Some(6) },
            ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => {
                TensorCall::Wrap
            }
            ("torch._tensor", "_rebuild_from_type_v2") => TensorCall::Subclass,
            _ => return None,
        };
        Some((kind, *arguments))
    }

    /// A tensor of a subclass: the function, the class, the arguments and a state.
    fn subclass(&mut self, arguments: Id, name: &str) -> std::result::Result<(), String> {
        let tree = self.tree;
        if let Some(&[function, _, arguments, ..]) = tree.sequence(arguments)
            && let Some(("torch._utils", "_rebuild_tensor_v2")) = tree.global(function)
        {
            let view = self
                .view(arguments, None)
                .map_err(|problem| format!("tensor `{}` {problem}", shown(name)))?;
            self.add(name, view)?;
        }
        Ok(())
    }

    /// The arguments of `_rebuild_tensor_v2`: storage, offset, size, strides and some that are ignored.
    /// The third version has an argument for the type, and storages that have none.
    fn view(&self, arguments: Id, dtype: Option<usize>) -> std::result::Result<View, String> {
        let unclear = || "is not described as torch.save describes tensors".to_owned();
        let tree = self.tree;
        let arguments = tree.sequence(arguments).ok_or_else(unclear)?;
        let &[storage, offset, size, strides, ..] = arguments else { return Err(unclear()) };

        let Value::Persistent(storage) = tree.get(storage) else { return Err(unclear()) };
        let &[tag, class, key, _, count] = tree.sequence(*storage).ok_or_else(unclear)? else {
            return Err(unclear());
        };
        if tree.text(tag) != Some("storage") {
            return Err(unclear());
        }
        let key = tree.text(key).ok_or_else(unclear)?;
        if key.len() > MAX_NAME {
            return Err(unclear());
        }
        let class = if let Some(place) = dtype {
            *arguments.get(place).ok_or_else(unclear)?
        } else {
            class
        };
        let (module, class) = tree.global(class).ok_or_else(unclear)?;
        let element = if module == "torch" { element(class) } else { None };
        let element = element
            .ok_or_else(|| format!("has the unknown type {}.{}", shown(module), shown(class)))?;

        let axes = |id: Id, what: &str| -> std::result::Result<Vec<usize>, String> {
            let items = self.size(id).ok_or_else(unclear)?;
            if items.len() > MAX_RANK {
                return Err(format!("has {} axes", items.len()));
            }
            items
                .iter()
                .map(|&item| {
                    let n = tree.int(item).ok_or_else(unclear)?;
                    usize::try_from(n).map_err(|_| format!("has the impossible {what} {n}"))
                })
                .collect()
        };
        let shape = axes(size, "size")?;
        let mut strides = axes(strides, "stride")?;
        if shape.len() != strides.len() {
            return Err(unclear());
        }
        // The stride of an axis of length 1 is irrelevant.
        for (stride, _) in strides.iter_mut().zip(&shape).filter(|&(_, &n)| n == 1) {
            *stride = 0;
        }
        let natural = |id: Id, what: &str| {
            let n = tree.int(id).ok_or_else(unclear)?;
            usize::try_from(n).map_err(|_| format!("has the impossible {what} {n}"))
        };
        let offset = natural(offset, "offset")?;
        let mut count = natural(count, "storage size")?;
        if dtype.is_some() {
            count /= element.size().max(1);
        }
        let view = View { element, key: key.to_owned(), offset, shape, strides };
        let fits = view
            .extent()
            .and_then(|(_, span)| span.checked_add(offset))
            .is_some_and(|end| end <= count);
        // The offset of an empty tensor is irrelevant.
        if fits || view.shape.contains(&0) {
            Ok(view)
        } else {
            Err(format!(
                "of shape {:?} does not fit into its storage of {count} elements",
                view.shape
            ))
        }
    }

    /// A tuple of integers, or a `torch.Size`.
    fn size(&self, id: Id) -> Option<&[Id]> {
        match self.tree.get(id) {
            Value::Sequence(items) => Some(items),
            Value::Called { function, arguments, .. }
                if self.tree.global(*function) == Some(("torch", "Size")) =>
            {
                self.tree.sequence(*self.tree.sequence(*arguments)?.first()?)
            }
            _ => None,
        }
    }
}

enum TensorCall {
    /// Builds a tensor from a storage. `dtype` is the position of the type in the arguments.
    Rebuild {
        dtype: Option<usize>,
    },
    /// Its first argument is the tensor.
    Wrap,
    Subclass,
}

/// The element type of a storage class or a dtype.
fn element(name: &str) -> Option<Element> {
    Some(match name {
        "FloatStorage" | "float32" => Element::F32,
        "DoubleStorage" | "float64" => Element::F64,
        "HalfStorage" | "float16" => Element::F16,
        "BFloat16Storage" | "bfloat16" => Element::BF16,
        "LongStorage" | "int64" => Element::Other("i64", 8),
        "IntStorage" | "int32" => Element::Other("i32", 4),
        "ShortStorage" | "int16" => Element::Other("i16", 2),
        "CharStorage" | "int8" => Element::Other("i8", 1),
        "ByteStorage" | "uint8" => Element::Other("u8", 1),
        "uint16" => Element::Other("u16", 2),
        "uint32" => Element::Other("u32", 4),
        "uint64" => Element::Other("u64", 8),
        "BoolStorage" | "bool" => Element::Other("bool", 1),
        "ComplexFloatStorage" | "complex64" => Element::Other("c64", 8),
        "ComplexDoubleStorage" | "complex128" => Element::Other("c128", 16),
        "QInt8Storage" | "QUInt8Storage" | "QInt32Storage" => Element::Other("quantised", 1),
        name if name.starts_with("float8_") => Element::Other("f8", 1),
        _ => return None,
    })
}
