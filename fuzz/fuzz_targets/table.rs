//! Arbitrary bytes as a table with all its columns: a copy of what is read has the same rows.
#![no_main]

use arrow_array::RecordBatch;
use libfuzzer_sys::fuzz_target;
use shafer_data::{Result, Table, TableCopy};
use shafer_fuzz::files::{file, folder, line};

/// The largest number of rows to copy: a few bytes can announce any number.
const ROWS: usize = 1 << 15;

fuzz_target!(|bytes: &[u8]| {
    let file = file(".table", bytes);
    let table = match Table::open(file.path()) {
        Ok(table) => table,
        Err(error) => return drop(line(&error)),
    };
    let columns: Vec<usize> = (0..table.schema().fields().len()).collect();
    let whole = match read(&table, &columns) {
        Ok(whole) => whole,
        Err(error) => return drop(line(&error)),
    };
    // A column alone is the same as among others.
    if let Some(last) = columns.last() {
        let alone = read(&table, &[*last]).unwrap_or_else(|error| panic!("{error}"));
        let among: Vec<_> = whole.iter().map(|batch| batch.project(&[*last]).unwrap()).collect();
        same(&alone, &among);
    }
    if table.rows() > ROWS {
        return;
    }
    let folder = folder();
    let path = folder.path().join("copy");
    // Not everything that can be read can be written.
    if let Err(error) = copy(&table, &whole, &path) {
        return drop(line(&error));
    }
    let copied = Table::open(&path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(copied.rows(), table.rows());
    let again = read(&copied, &columns).unwrap_or_else(|error| panic!("{error}"));
    same(&again, &whole);
});

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

fn copy(table: &Table, whole: &[RecordBatch], path: &std::path::Path) -> Result<()> {
    let mut copy = TableCopy::create(path, table, table.schema(), None, &[])?;
    for batch in whole {
        copy.write(batch)?;
    }
    copy.finish()
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
