//! The protocol buffer messages of ONNX, with the needed fields only.

use prost::{Message, bytes::Bytes};

/// The most fields of a node or a tensor, other than its data.
const MAX_FIELDS: usize = 4096;

#[derive(Clone, PartialEq, Message)]
pub(super) struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    pub(super) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) output: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    #[prost(string, tag = "4")]
    pub(super) op_type: String,
    /// `AttributeProto`s, decoded on demand by their expected type.
    #[prost(bytes = "bytes", repeated, tag = "5")]
    pub(super) attribute: Vec<Bytes>,
}

/// An `AttributeProto` with one or several numbers.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NumberAttribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(float, optional, tag = "2")]
    pub(super) f: Option<f32>,
    #[prost(int64, tag = "3")]
    pub(super) i: i64,
    #[prost(int64, repeated, tag = "8")]
    pub(super) ints: Vec<i64>,
}

/// An `AttributeProto` with a tensor.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorAttribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// Decoded on demand by its expected type.
    #[prost(bytes = "bytes", tag = "5")]
    pub(super) t: Bytes,
}

/// A `TensorProto` without its data.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    pub(super) dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub(super) data_type: i32,
    #[prost(string, tag = "8")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "13")]
    pub(super) external_data: Vec<StringStringEntryProto>,
    #[prost(int32, tag = "14")]
    pub(super) data_location: i32,
}

/// The data of a `TensorProto`.
#[derive(Clone, PartialEq, Message)]
#[expect(clippy::struct_field_names, reason = "they are called so in the format")]
pub(super) struct TensorData {
    #[prost(float, repeated, tag = "4")]
    pub(super) float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub(super) int32_data: Vec<i32>,
    #[prost(bytes = "bytes", tag = "9")]
    pub(super) raw_data: Bytes,
    #[prost(double, repeated, tag = "10")]
    pub(super) double_data: Vec<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StringStringEntryProto {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueInfoProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

impl NodeProto {
    /// The name and the tensor of a `Constant` node.
    pub(super) fn constant(&self) -> Option<(&str, Bytes)> {
        let [name] = &self.output[..] else { return None };
        if self.op_type != "Constant" {
            return None;
        }
        let mut attributes =
            self.attribute.iter().filter_map(|bytes| TensorAttribute::decode(bytes.clone()).ok());
        let tensor = attributes.find(|attribute| attribute.name == "value")?.t;
        (!tensor.is_empty()).then_some((name, tensor))
    }
}

/// The fields of a message: the number of each, and the bytes of length-delimited ones.
pub(super) struct Fields(pub(super) Bytes);

impl Fields {
    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number has no end".to_owned())
    }

    fn take(&mut self, length: u64) -> Result<Bytes, String> {
        if length > self.0.len() as u64 {
            return Err("it ends early".to_owned());
        }
        Ok(self.0.split_to(length as usize))
    }

    fn field(&mut self) -> Result<(u64, Option<Bytes>), String> {
        let key = self.varint()?;
        let bytes = match key & 7 {
            0 => {
                self.varint()?;
                None
            }
            1 => {
                self.take(8)?;
                None
            }
            2 => {
                let length = self.varint()?;
                Some(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                None
            }
            other => return Err(format!("it has a field of the unknown kind {other}")),
        };
        Ok((key >> 3, bytes))
    }
}

impl Iterator for Fields {
    type Item = Result<(u64, Option<Bytes>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            // The rest cannot be decoded.
            self.0.clear();
        }
        Some(field)
    }
}

/// Whether a message has few enough fields to decode, not counting those with the given numbers.
pub(super) fn check_fields(message: &Bytes, except: &[u64]) -> Result<(), String> {
    let mut count = 0;
    for field in Fields(message.clone()) {
        count += usize::from(!except.contains(&field?.0));
        if count > MAX_FIELDS {
            return Err(format!("a part of its graph has more than {MAX_FIELDS} fields"));
        }
    }
    Ok(())
}
