//! Reads pickles without executing them.
//!
//! A pickle is a program for a stack machine, and in Python it can call any function. This machine calls
//! nothing: it builds values for the few calls that `torch.save` writes, and opaque values for all others.
//! Values are stored in an arena and refer to each other by index, so that nesting and cycles in a file
//! cause neither recursion nor reference cycles.

use std::{collections::HashMap, ops::Range};

use super::shown;

/// The most steps. A checkpoint of a large language model takes about 10^5.
pub(super) const MAX_STEPS: usize = 4_000_000;
pub(super) const MAX_VALUES: usize = 1_000_000;

/// The index of a value in the arena.
pub(super) type Id = u32;

#[derive(Clone, Debug)]
pub(super) enum Value {
    Int(i64),
    /// A byte range of the pickle.
    Text(Range<usize>),
    Sequence(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// An import: the byte ranges of module and name.
    Global(Range<usize>, Range<usize>),
    /// The result of `persistent_load`.
    Persistent(Id),
    /// The result of a call, with the state that was set later.
    Called {
        function: Id,
        arguments: Id,
        state: Option<Id>,
    },
    /// `None`, a boolean, a float, bytes or a set, which no tensor needs.
    Opaque,
}

/// The values of a pickle.
#[derive(Debug)]
pub(super) struct Tree<'p> {
    pickle: &'p [u8],
    values: Vec<Value>,
    root: Id,
}

impl<'p> Tree<'p> {
    pub(super) fn root(&self) -> Id {
        self.root
    }

    pub(super) fn get(&self, id: Id) -> &Value {
        &self.values[id as usize]
    }

    /// The text of a value, if it is valid UTF-8.
    pub(super) fn text(&self, id: Id) -> Option<&'p str> {
        match self.get(id) {
            Value::Text(range) => std::str::from_utf8(&self.pickle[range.clone()]).ok(),
            _ => None,
        }
    }

    pub(super) fn int(&self, id: Id) -> Option<i64> {
        match self.get(id) {
            Value::Int(n) => Some(*n),
            _ => None,
        }
    }

    pub(super) fn sequence(&self, id: Id) -> Option<&[Id]> {
        match self.get(id) {
            Value::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// Module and name of an import.
    pub(super) fn global(&self, id: Id) -> Option<(&'p str, &'p str)> {
        match self.get(id) {
            Value::Global(module, name) => Some((
                std::str::from_utf8(&self.pickle[module.clone()]).ok()?,
                std::str::from_utf8(&self.pickle[name.clone()]).ok()?,
            )),
            _ => None,
        }
    }
}

/// Runs the machine.
pub(super) fn read(pickle: &[u8]) -> Result<Tree<'_>, String> {
    let mut machine = Machine {
        pickle,
        position: 0,
        values: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    let root = machine.run()?;
    Ok(Tree { pickle, values: machine.values, root })
}

struct Machine<'p> {
    pickle: &'p [u8],
    position: usize,
    values: Vec<Value>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    /// A map: a hostile pickle can use sparse keys.
    memo: HashMap<u32, Id>,
}

type Step<T> = Result<T, String>;

impl Machine<'_> {
    fn run(&mut self) -> Step<Id> {
        for _ in 0..MAX_STEPS {
            let start = self.position;
            let [code] = self.bytes()?;
            if code == b'.' {
                return self.pop();
            }
            self.step(code, start)?;
        }
        Err(format!("the pickle takes more than {MAX_STEPS} steps"))
    }

    #[expect(clippy::too_many_lines, reason = "a table: one line or two for each code")]
    fn step(&mut self, code: u8, start: usize) -> Step<()> {
        match code {
            // PROTO, FRAME: ignored.
            0x80 => {
                let [protocol] = self.bytes()?;
                if !(2..=5).contains(&protocol) {
                    return Err(format!("the pickle has the unknown protocol {protocol}"));
                }
            }
            0x95 => {
                let _: [u8; 8] = self.bytes()?;
            }
            // Constants and the empty set.
            b'N' | 0x88 | 0x89 | 0x8f => self.push(Value::Opaque)?,
            b'J' => {
                let n = i32::from_le_bytes(self.bytes()?);
                self.push(Value::Int(n.into()))?;
            }
            b'K' => {
                let [n] = self.bytes()?;
                self.push(Value::Int(n.into()))?;
            }
            b'M' => {
                let n = u16::from_le_bytes(self.bytes()?);
                self.push(Value::Int(n.into()))?;
            }
            0x8a => {
                let [n] = self.bytes()?;
                let range = self.take(n.into())?;
                let value = long(&self.pickle[range]);
                self.push(value)?;
            }
            b'G' => {
                let _: [u8; 8] = self.bytes()?;
                self.push(Value::Opaque)?;
            }
            // Text, and strings of Python 2, which can be names.
            b'X' | b'T' => {
                let n = self.length4()?;
                self.push_text(n)?;
            }
            0x8c | b'U' => {
                let [n] = self.bytes()?;
                self.push_text(n.into())?;
            }
            0x8d => {
                let n = self.length8()?;
                self.push_text(n)?;
            }
            // Bytes, and numbers of more than 255 bytes.
            b'C' => {
                let [n] = self.bytes()?;
                self.take(n.into())?;
                self.push(Value::Opaque)?;
            }
            b'B' | 0x8b => {
                let n = self.length4()?;
                self.take(n)?;
                self.push(Value::Opaque)?;
            }
            0x8e | 0x96 => {
                let n = self.length8()?;
                self.take(n)?;
                self.push(Value::Opaque)?;
            }
            // Containers.
            b'(' => self.marks.push(self.stack.len()),
            b')' | b']' => self.push(Value::Sequence(Vec::new()))?,
            b'}' => self.push(Value::Dict(Vec::new()))?,
            b't' | b'l' => {
                let items = self.pop_mark()?;
                self.push(Value::Sequence(items))?;
            }
            b'd' => {
                let pairs = pairs(&self.pop_mark()?)?;
                self.push(Value::Dict(pairs))?;
            }
            0x85..=0x87 => {
                let n = usize::from(code - 0x84);
                let items = self.pop_many(n)?;
                self.push(Value::Sequence(items))?;
            }
            // Sets, which stay empty: they contain no tensors.
            0x91 => {
                self.pop_mark()?;
                self.push(Value::Opaque)?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(&[item])?;
            }
            b'e' => {
                let items = self.pop_mark()?;
                self.append(&items)?;
            }
            b's' => {
                let items = self.pop_many(2)?;
                self.set_items(&items)?;
            }
            b'u' => {
                let items = self.pop_mark()?;
                self.set_items(&items)?;
            }
            // The stack and the memo.
            b'0' => {
                self.pop()?;
            }
            0x90 | b'1' => {
                self.pop_mark()?;
            }
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
            }
            b'q' => {
                let [n] = self.bytes()?;
                self.put(n.into())?;
            }
            b'r' => {
                let n = u32::from_le_bytes(self.bytes()?);
                self.put(n)?;
            }
            0x94 => {
                let n = self.memo.len() as u32;
                self.put(n)?;
            }
            b'h' => {
                let [n] = self.bytes()?;
                self.recall(n.into())?;
            }
            b'j' => {
                let n = u32::from_le_bytes(self.bytes()?);
                self.recall(n)?;
            }
            // Imports and calls: recorded, not executed.
            b'c' => {
                let module = self.line()?;
                let name = self.line()?;
                self.push(Value::Global(module, name))?;
            }
            0x93 => {
                let items = self.pop_many(2)?;
                let (Value::Text(module), Value::Text(name)) =
                    (self.value(items[0]).clone(), self.value(items[1]).clone())
                else {
                    return Err("the pickle imports a value that is not a name".to_owned());
                };
                self.push(Value::Global(module, name))?;
            }
            b'R' | 0x81 => {
                let items = self.pop_many(2)?;
                self.call(items[0], items[1])?;
            }
            0x92 => {
                let items = self.pop_many(3)?;
                self.call(items[0], items[1])?;
            }
            b'b' => {
                let state = self.pop()?;
                let top = self.top()?;
                // The attributes of an ordered dictionary contain no tensors.
                if let Value::Called { state: place, .. } = self.value_mut(top) {
                    *place = Some(state);
                }
            }
            b'Q' => {
                let id = self.pop()?;
                self.push(Value::Persistent(id))?;
            }
            _ => {
                return Err(format!(
                    "the pickle has the code {code:#04x} at byte {start}, \
                     which torch.save does not write"
                ));
            }
        }
        Ok(())
    }

    /// Records a call. An ordered dictionary becomes a dictionary. A call that can only be malicious is an error
    /// with its name, to inform the user: no call is executed either way.
    fn call(&mut self, function: Id, arguments: Id) -> Step<()> {
        let Value::Global(module, name) = self.value(function) else {
            return Err("the pickle calls a value that is not a function".to_owned());
        };
        let module = String::from_utf8_lossy(&self.pickle[module.clone()]);
        let name = String::from_utf8_lossy(&self.pickle[name.clone()]);
        if hostile(&module, &name) {
            return Err(format!(
                "the pickle asks to call {}.{}, which no model needs (nothing was called)",
                shown(&module),
                shown(&name)
            ));
        }
        if module == "collections" && matches!(&*name, "OrderedDict" | "defaultdict") {
            // Protocols before 2 pass the items as a list. torch has never used those.
            return self.push(Value::Dict(Vec::new()));
        }
        self.push(Value::Called { function, arguments, state: None })
    }

    fn append(&mut self, items: &[Id]) -> Step<()> {
        let top = self.top()?;
        match self.value_mut(top) {
            Value::Sequence(list) => list.extend_from_slice(items),
            Value::Called { .. } | Value::Opaque => {}
            _ => return Err("the pickle appends to a value that is not a list".to_owned()),
        }
        Ok(())
    }

    fn set_items(&mut self, items: &[Id]) -> Step<()> {
        let pairs = pairs(items)?;
        let top = self.top()?;
        match self.value_mut(top) {
            Value::Dict(dict) => dict.extend(pairs),
            Value::Called { .. } | Value::Opaque => {}
            _ => return Err("the pickle sets items of a value that is not a dictionary".to_owned()),
        }
        Ok(())
    }

    fn value(&self, id: Id) -> &Value {
        &self.values[id as usize]
    }

    fn value_mut(&mut self, id: Id) -> &mut Value {
        &mut self.values[id as usize]
    }

    fn push(&mut self, value: Value) -> Step<()> {
        if self.values.len() == MAX_VALUES {
            return Err(format!("the pickle holds more than {MAX_VALUES} values"));
        }
        self.stack.push(self.values.len() as Id);
        self.values.push(value);
        Ok(())
    }

    fn push_text(&mut self, length: usize) -> Step<()> {
        let range = self.take(length)?;
        self.push(Value::Text(range))
    }

    /// The height of the stack at the last mark. Values below it must not be popped.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Step<Id> {
        if self.stack.len() <= self.floor() {
            return Err(EMPTY_STACK.to_owned());
        }
        self.stack.last().copied().ok_or_else(|| EMPTY_STACK.to_owned())
    }

    fn pop(&mut self) -> Step<Id> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn pop_many(&mut self, n: usize) -> Step<Vec<Id>> {
        if self.stack.len() < self.floor() + n {
            return Err(EMPTY_STACK.to_owned());
        }
        Ok(self.stack.split_off(self.stack.len() - n))
    }

    fn pop_mark(&mut self) -> Step<Vec<Id>> {
        let mark = self.marks.pop().ok_or("the pickle closes what it did not open")?;
        Ok(self.stack.split_off(mark))
    }

    fn put(&mut self, key: u32) -> Step<()> {
        let top = self.top()?;
        // Bounded by the number of values.
        if self.memo.len() == MAX_VALUES && !self.memo.contains_key(&key) {
            return Err(format!("the pickle remembers more than {MAX_VALUES} values"));
        }
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u32) -> Step<()> {
        let id = *self
            .memo
            .get(&key)
            .ok_or_else(|| format!("the pickle refers to value {key}, which it did not store"))?;
        self.stack.push(id);
        Ok(())
    }

    fn take(&mut self, length: usize) -> Step<Range<usize>> {
        if length > self.pickle.len() - self.position {
            return Err("the pickle ends early".to_owned());
        }
        let start = self.position;
        self.position += length;
        Ok(start..self.position)
    }

    fn bytes<const N: usize>(&mut self) -> Step<[u8; N]> {
        let range = self.take(N)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.pickle[range]);
        Ok(bytes)
    }

    fn length4(&mut self) -> Step<usize> {
        Ok(u32::from_le_bytes(self.bytes()?) as usize)
    }

    fn length8(&mut self) -> Step<usize> {
        // On 32-bit machines a longer length is an error anyway.
        Ok(usize::try_from(u64::from_le_bytes(self.bytes()?)).unwrap_or(usize::MAX))
    }

    /// The rest of a line.
    fn line(&mut self) -> Step<Range<usize>> {
        let rest = &self.pickle[self.position..];
        let length = rest.iter().position(|&b| b == b'\n').ok_or("the pickle ends early")?;
        let range = self.take(length)?;
        self.position += 1;
        Ok(range)
    }
}

const EMPTY_STACK: &str = "the pickle takes from an empty stack";

fn pairs(items: &[Id]) -> Step<Vec<(Id, Id)>> {
    let (pairs, rest) = items.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("the pickle has a key without a value".to_owned());
    }
    Ok(pairs.iter().map(|&[key, value]| (key, value)).collect())
}

/// An integer of any width, little-endian in two's complement.
fn long(bytes: &[u8]) -> Value {
    if bytes.len() > 8 {
        return Value::Opaque;
    }
    let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    Value::Int(i64::from_le_bytes(wide))
}

fn hostile(module: &str, name: &str) -> bool {
    let package = module.split('.').next().unwrap_or(module);
    match package {
        "os" | "posix" | "nt" | "subprocess" | "sys" | "shutil" | "socket" | "runpy" | "ctypes"
        | "importlib" | "pty" | "code" | "timeit" | "pdb" | "webbrowser" | "asyncio"
        | "multiprocessing" | "pickle" | "urllib" | "requests" | "httplib" | "http"
        | "commands" | "platform" | "pip" | "marshal" | "types" => true,
        "builtins" | "__builtin__" => {
            // The opcodes that build values.
            !matches!(
                name,
                "set"
                    | "frozenset"
                    | "dict"
                    | "list"
                    | "tuple"
                    | "int"
                    | "float"
                    | "str"
                    | "bool"
                    | "bytes"
                    | "bytearray"
                    | "complex"
                    | "slice"
                    | "range"
                    | "object"
            )
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, long, read};

    #[test]
    fn numbers_of_any_width() {
        for (bytes, expected) in [
            (&[][..], 0),
            (&[1][..], 1),
            (&[0xff][..], -1),
            (&[0xff, 0][..], 255),
            (&[0, 0, 0, 0, 1][..], 1 << 32),
        ] {
            assert!(matches!(long(bytes), Value::Int(n) if n == expected), "{bytes:?}");
        }
    }

    #[test]
    fn a_call_is_written_down() {
        let tree = read(b"\x80\x02cargparse\nNamespace\n)R}b.").expect("reads");
        let Value::Called { function, state: Some(_), .. } = tree.get(tree.root()) else {
            panic!("{tree:?}");
        };
        assert_eq!(tree.global(*function), Some(("argparse", "Namespace")));
    }

    #[test]
    fn marks_protect_what_lies_below() {
        assert!(read(b"\x80\x02N(0.").is_err());
        assert!(read(b"\x80\x02N(\x85.").is_err());
    }
}
