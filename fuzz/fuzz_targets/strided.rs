//! Arbitrary shape, strides, offset and axis, through `laws::strided`.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use shafer_fuzz::laws::{Array, Bits, strided};
use shafer_fuzz::{Count, Number, Parameters, Type, repeated, with_type};

/// Mostly short steps in either direction.
#[derive(Clone, Copy, Debug)]
struct Stride(isize);

impl<'a> Arbitrary<'a> for Stride {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(match u.arbitrary::<i8>()? {
            i8::MIN => u.arbitrary()?,
            small => isize::from(small) % 9,
        }))
    }
}

#[derive(Arbitrary, Debug)]
struct Input {
    parameters: Parameters,
    of: Type,
    numbers: Vec<Number>,
    clean: bool,
    len: u8,
    dimensions: Vec<(Count, Stride)>,
    /// Different lengths must be refused.
    another_stride: Option<Stride>,
    offset: Count,
    axis: Count,
    mask: Vec<bool>,
    by_class: bool,
}

fn check<E: Bits>(input: &Input) {
    let data: Vec<E> = repeated(&input.numbers, usize::from(input.len), input.clean);
    let (shape, mut strides): (Vec<usize>, Vec<isize>) =
        input.dimensions.iter().map(|(size, stride)| (size.0, stride.0)).unzip();
    strides.extend(input.another_stride.map(|stride| stride.0));
    let array = Array { shape, strides, offset: input.offset.0, axis: input.axis.0 };
    strided(input.parameters.choice(), &data, &array, &input.mask, input.by_class);
}

fuzz_target!(|input: Input| with_type!(input.of, check(&input)));
