//! A table with all its columns, copied: the copy has the same rows. For mutated and fuzzed files.
#![allow(unreachable_pub, clippy::unwrap_used, reason = "the fuzz targets use it, too")]

use std::path::Path;

use arrow_array::RecordBatch;
use shafer_data::{Result, Table, TableCopy};

/// The largest number of rows to copy: a few bytes can announce any number.
const ROWS: usize = 1 << 15;

/// Reads a table, and copies it to another path. What cannot be read or written is an error, and a copy with other
/// rows a panic.
pub fn check(path: &Path, copy: &Path) -> Result<()> {
    let table = Table::open(path)?;
    let columns: Vec<usize> = (0..table.schema().fields().len()).collect();
    let whole = read(&table, &columns)?;
    // A column alone is the same as among others.
    if let Some(&last) = columns.last() {
        let among: Vec<_> = whole.iter().map(|batch| batch.project(&[last]).unwrap()).collect();
        same(&read(&table, &[last]).unwrap(), &among);
    }
    if table.rows() > ROWS {
        return Ok(());
    }
    let mut writer = TableCopy::create(copy, &table, table.schema(), None, &[])?;
    for batch in &whole {
        writer.write(batch)?;
    }
    writer.finish()?;
    let copied = Table::open(copy).unwrap();
    assert_eq!(copied.rows(), table.rows());
    same(&read(&copied, &columns).unwrap(), &whole);
    Ok(())
}

/// All rows, or the first of many.
fn read(table: &Table, columns: &[usize]) -> Result<Vec<RecordBatch>> {
    let (mut batches, mut all, mut rows) = (table.batches(columns)?, Vec::new(), 0);
    while let Some(batch) = batches.next()? {
        assert!(batch.num_rows() > 0 && batch.num_columns() == columns.len());
        rows += batch.num_rows();
        assert!(rows <= table.rows());
        if rows <= ROWS {
            all.push(batch);
        }
        if rows > 4 * ROWS {
            return Ok(all);
        }
    }
    assert_eq!(rows, table.rows());
    Ok(all)
}

/// Compares rows, however they are cut into batches.
fn same(a: &[RecordBatch], b: &[RecordBatch]) {
    let (mut a, mut b) = (a.iter().cloned(), b.iter().cloned());
    let (mut left, mut right) = (a.next(), b.next());
    while let (Some(x), Some(y)) = (&left, &right) {
        let rows = x.num_rows().min(y.num_rows());
        for (x, y) in x.columns().iter().zip(y.columns()) {
            assert_eq!(x.data_type(), y.data_type());
            assert!(x.slice(0, rows) == y.slice(0, rows), "{x:?}\n{y:?}");
        }
        let rest = |batch: &RecordBatch| {
            (batch.num_rows() > rows).then(|| batch.slice(rows, batch.num_rows() - rows))
        };
        (left, right) = (rest(x).or_else(|| a.next()), rest(y).or_else(|| b.next()));
    }
}
