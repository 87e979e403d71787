//! A class drawn from each row.

use std::convert::Infallible;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, Int32Array, UInt64Array};
use arrow_buffer::NullBuffer;
use rand_core::TryRng;
use shafer::{CsrRows, Element, Method, sample_csr};

use crate::lists::typed;
use crate::{Error, LogitLists, Result};

impl LogitLists {
    /// A class drawn from the distribution of each row, by the row's own seed.
    ///
    /// The draw depends on the row and its seed alone, not on other rows, so it is the same in any batch and on any
    /// machine. Draws of rows with different seeds are independent; the number of a row is a good seed. Null for a null
    /// row and a null seed.
    ///
    /// ```
    /// use arrow_array::{ListArray, UInt64Array, types::Float64Type};
    /// use shafer::Method;
    /// use shafer_arrow::LogitLists;
    ///
    /// let rows = (0..1000).map(|_| Some(vec![Some(3.0_f64.ln()), Some(0.0)]));
    /// let column = ListArray::from_iter_primitive::<Float64Type, _, _>(rows);
    /// let seeds = UInt64Array::from_iter_values(0..1000);
    /// let classes = LogitLists::new(&column)?.draw(Method::SOFTMAX, &seeds)?;
    /// let second: i32 = classes.values().iter().sum();
    /// assert!((200..300).contains(&second)); // a quarter of 1000
    /// # Ok::<(), shafer_arrow::Error>(())
    /// ```
    pub fn draw(&self, method: Method, seeds: &UInt64Array) -> Result<Int32Array> {
        if seeds.len() != self.len() {
            return Err(Error::Length { what: "seeds", rows: self.len(), found: seeds.len() });
        }
        typed!(self, draw_of(method, seeds))
    }

    fn draw_of<T: ArrowPrimitiveType<Native: Element>>(
        &self,
        method: Method,
        seeds: &UInt64Array,
    ) -> Result<Int32Array> {
        let logits = self.values.as_primitive::<T>().values();
        let mut drawn = vec![0; self.len()];
        let mut rows = CsrRows::new();
        for run in self.runs() {
            let at = |error| Error::at(run.first, error);
            method.csr_into(&self.batch(logits, &run)?, self.threads, &mut rows).map_err(at)?;
            for (row, (classes, probabilities)) in rows.iter().enumerate() {
                let row = run.first + row;
                let mut generator = SplitMix64(seeds.value(row));
                let class = sample_csr(classes, probabilities, &mut generator);
                drawn[row] = class.map_err(|error| Error::at(row, error))? as i32;
            }
        }
        let nulls = NullBuffer::union(self.nulls.as_ref(), seeds.nulls());
        Ok(Int32Array::new(drawn.into(), nulls))
    }
}

/// Steele, Lea and Flood's generator. Only its first number is used, a bijective mixture of the seed's bits.
struct SplitMix64(u64);

impl TryRng for SplitMix64 {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> std::result::Result<u32, Infallible> {
        self.try_next_u64().map(|word| (word >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> std::result::Result<u64, Infallible> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Ok(z ^ (z >> 31))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            let word = self.try_next_u64()?.to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}
