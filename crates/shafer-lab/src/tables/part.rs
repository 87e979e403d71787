//! One part of a table.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, Error, Result, anyhow, bail};
use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde::Serialize;
use shafer::{Method, Threads};
use shafer_arrow::{LogitLists, sparse_type};
use shafer_data::{Table, TableCopy, table_note};

use super::{Part, Request};

/// The notes of an output: the settings, and the length and the time of its input.
const SETTINGS: &str = "settings";
const SOURCE: &str = "source";

/// How to transform every part.
#[derive(Debug)]
pub(super) struct Plan {
    method: Method,
    temperature: f64,
    dense: bool,
    force: bool,
    pub(super) column: String,
    /// The part that the plan was made for, and its columns that are kept.
    first: String,
    fields: Vec<Arc<Field>>,
    /// Whether columns were chosen. Otherwise another column of a part would be lost.
    chosen: bool,
    settings: String,
}

/// Why a part is not done.
pub(super) enum Failure {
    /// The part cannot be read, or breaks a rule.
    Input(Error),
    /// Nothing can be written, or the user has stopped the program.
    All(Error),
}

/// What was in a part.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Counts {
    pub(super) rows: usize,
    pub(super) null_rows: usize,
    /// Rows in which the evidence favours no class.
    pub(super) vacuous: usize,
    /// Of all rows together.
    #[serde(skip)]
    pub(super) classes: usize,
    #[serde(skip)]
    pub(super) kept: usize,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.null_rows += other.null_rows;
        self.vacuous += other.vacuous;
        self.classes += other.classes;
        self.kept += other.kept;
    }
}

impl Plan {
    /// Chooses the columns of a table.
    pub(super) fn new(path: &Path, table: &Table, request: &Request) -> Result<Self> {
        let (label, schema) = (path.display().to_string(), table.schema());
        let column = match &request.column {
            Some(name) => name.clone(),
            None => only_lists(&label, schema)?,
        };
        let position = |name: &str| {
            let found = schema.fields().iter().position(|field| field.name() == name);
            found.with_context(|| {
                format!(
                    "{label}: has no column `{}`; it holds {}",
                    name.escape_debug(),
                    listing(schema)
                )
            })
        };
        let at = position(&column)?;
        LogitLists::check_type(schema.field(at).data_type())
            .with_context(|| format!("{label}, column `{}`", column.escape_debug()))?;
        let mut kept = vec![request.keep.is_none(); schema.fields().len()];
        for name in request.keep.iter().flatten() {
            kept[position(name)?] = true;
        }
        kept[at] = true;
        let fields = schema.fields().iter().zip(&kept).filter(|(_, kept)| **kept);
        let fields: Vec<_> = fields.map(|(field, _)| Arc::clone(field)).collect();
        // Columns are found by their names in all parts.
        for (i, field) in fields.iter().enumerate() {
            if fields[..i].iter().any(|other| other.name() == field.name()) {
                let name = field.name().escape_debug();
                bail!(
                    "{label}: has two columns `{name}`; rename one, or choose others with --keep"
                );
            }
        }
        let Request { method, temperature, dense, force, .. } = *request;
        let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        let settings = format!(
            "{method:?}, temperature {temperature}, column {column:?} of {names:?}, dense {dense}"
        );
        let chosen = request.keep.is_some();
        Ok(Self {
            method,
            temperature,
            dense,
            force,
            column,
            first: label,
            fields,
            chosen,
            settings,
        })
    }

    /// The positions of the columns in a table, in ascending order. Fails unless it has those of the first one.
    pub(super) fn positions(&self, path: &Path, table: &Table) -> Result<Vec<usize>> {
        let (label, schema) = (path.display(), table.schema());
        let mut positions = Vec::with_capacity(self.fields.len());
        for expected in &self.fields {
            let name = expected.name();
            let Some(at) = schema.fields().iter().position(|field| field.name() == name) else {
                bail!(
                    "{label}: has no column `{}`, which {} has; it holds {}",
                    name.escape_debug(),
                    self.first,
                    listing(schema)
                );
            };
            let found = schema.field(at).data_type();
            if !found.equals_datatype(expected.data_type()) {
                bail!(
                    "{label}: column `{}` is {found}, but {} in {}; write all parts with one schema",
                    name.escape_debug(),
                    expected.data_type(),
                    self.first
                );
            }
            positions.push(at);
        }
        let known = |name: &String| self.fields.iter().any(|field| field.name() == name);
        let more = schema.fields().iter().find(|field| !self.chosen && !known(field.name()));
        if let Some(more) = more {
            bail!(
                "{label}: has a column `{}`, which {} lacks; choose columns with --keep",
                more.name().escape_debug(),
                self.first
            );
        }
        if !positions.is_sorted() {
            bail!(
                "{label}: has its columns in another order than {}; write all parts with one schema",
                self.first
            );
        }
        Ok(positions)
    }

    /// Whether the output of a part is there, made of the same input with the same settings. Fails if it is
    /// another file.
    pub(super) fn is_finished(&self, part: &Part, table: &Table) -> Result<bool> {
        let Some(output) = part.output.as_deref().filter(|output| output.exists()) else {
            return Ok(false);
        };
        let found = Table::open(output).ok();
        let note = |key| found.as_ref().and_then(|found| table_note(found, key));
        let rows = found.as_ref().map(Table::rows);
        match note(SETTINGS) {
            Some(settings) if settings == self.settings => {
                // An input that was written anew is transformed anew.
                Ok(rows == Some(table.rows()) && note(SOURCE) == Some(&stamp(&part.input)?))
            }
            _ if self.force => Ok(false),
            Some(_) => bail!(
                "{}: exists and was made with other settings; --force replaces it",
                output.display()
            ),
            None => bail!(
                "{}: exists and was not written by this command; --force replaces it",
                output.display()
            ),
        }
    }

    /// Transforms a part. `advance` is called with the number of rows after each batch.
    pub(super) fn run(
        &self,
        part: &Part,
        threads: Threads,
        advance: &dyn Fn(usize) -> Result<()>,
    ) -> Result<Counts, Failure> {
        let input = Failure::Input;
        let source = stamp(&part.input).map_err(input)?;
        let table = Table::open(&part.input).map_err(|e| input(e.into()))?;
        let positions = self.positions(&part.input, &table).map_err(input)?;
        let at = self.fields.iter().position(|field| *field.name() == self.column).unwrap_or(0);
        let schema = self.schema(&table, &positions, at).map_err(input)?;
        let mut out = match &part.output {
            None => None,
            Some(output) => {
                Some(self.create(output, &table, &schema, &source).map_err(Failure::All)?)
            }
        };
        let mut batches = table.batches(&positions).map_err(|e| input(e.into()))?;
        let mut counts = Counts::default();
        while let Some(batch) = batches.next().map_err(|e| input(e.into()))? {
            let rows = self.transform(batch.column(at), threads, part.output.is_some()).map_err(
                |error| {
                    let (file, error) = (part.input.display(), error.after(counts.rows));
                    input(anyhow!("{file}:{}: {error}", self.column))
                },
            )?;
            counts.add(&rows.counts);
            if let (Some(out), Some(array)) = (&mut out, rows.array) {
                let mut columns = batch.columns().to_vec();
                columns[at] = array;
                let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
                    .with_context(|| part.input.display().to_string())
                    .map_err(input)?;
                out.write(&batch).map_err(|e| Failure::All(e.into()))?;
            }
            advance(rows.counts.rows).map_err(Failure::All)?;
        }
        if let Some(out) = out {
            out.finish().map_err(|e| Failure::All(e.into()))?;
        }
        Ok(counts)
    }

    /// The columns of the output.
    fn schema(&self, table: &Table, positions: &[usize], at: usize) -> Result<SchemaRef> {
        let all = table.schema();
        let mut fields: Vec<Arc<Field>> =
            positions.iter().map(|&i| Arc::clone(&all.fields()[i])).collect();
        if !self.dense {
            let kind = sparse_type(fields[at].data_type())?;
            fields[at] = Arc::new(fields[at].as_ref().clone().with_data_type(kind));
        }
        Ok(Arc::new(Schema::new_with_metadata(fields, all.metadata().clone())))
    }

    fn create(
        &self,
        output: &Path,
        table: &Table,
        schema: &SchemaRef,
        source: &str,
    ) -> Result<TableCopy> {
        if let Some(folder) = output.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("{}: cannot create the folder", folder.display()))?;
        }
        let sparse = (!self.dense).then_some(self.column.as_str());
        let notes = [("method", self.method.name()), (SETTINGS, &self.settings), (SOURCE, source)];
        Ok(TableCopy::create(output, table, schema, sparse, &notes)?)
    }

    fn transform(
        &self,
        logits: &ArrayRef,
        threads: Threads,
        wanted: bool,
    ) -> shafer_arrow::Result<Rows> {
        let lists = LogitLists::new(logits)?.temperature(self.temperature)?.threads(threads);
        let mut counts = Counts {
            rows: logits.len(),
            null_rows: logits.null_count(),
            classes: classes(logits),
            ..Counts::default()
        };
        let sizes = |lists: &LogitLists| -> shafer_arrow::Result<usize> {
            Ok(lists.support_size(self.method)?.values().iter().map(|&size| size as usize).sum())
        };
        let array = match (wanted, self.dense) {
            (true, false) => {
                let (array, report) = lists.sparse(self.method)?;
                counts.vacuous = report.vacuous;
                counts.kept = classes(&array);
                Some(array)
            }
            (true, true) => {
                counts.kept = sizes(&lists)?;
                Some(lists.dense(self.method)?)
            }
            (false, _) => {
                counts.kept = sizes(&lists)?;
                None
            }
        };
        Ok(Rows { counts, array })
    }
}

/// The rows of a batch.
struct Rows {
    counts: Counts,
    array: Option<ArrayRef>,
}

/// The number of entries of all lists.
fn classes(lists: &ArrayRef) -> usize {
    match lists.data_type() {
        DataType::List(_) => {
            let ends = lists.as_list::<i32>().offsets();
            (ends[lists.len()] - ends[0]) as usize
        }
        DataType::LargeList(_) => {
            let ends = lists.as_list::<i64>().offsets();
            (ends[lists.len()] - ends[0]) as usize
        }
        DataType::FixedSizeList(_, n) => (lists.len() - lists.null_count()) * *n as usize,
        _ => 0,
    }
}

/// The length of a file and the time of its last change, which tell whether it is still the same.
fn stamp(path: &Path) -> Result<String> {
    let cannot = || format!("{}: cannot read", path.display());
    let found = fs::metadata(path).with_context(cannot)?;
    // Some file systems have no time.
    let time = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(format!("{} bytes, {} ns", found.len(), time.unwrap_or_default().as_nanos()))
}

/// The only column of lists of floating-point numbers.
fn only_lists(label: &str, schema: &Schema) -> Result<String> {
    let mut lists =
        schema.fields().iter().filter(|field| LogitLists::check_type(field.data_type()).is_ok());
    match (lists.next(), lists.next()) {
        (Some(only), None) => Ok(only.name().clone()),
        (None, _) => bail!(
            "{label}: has no column of lists of f16, f32 or f64; it holds {}",
            listing(schema)
        ),
        (Some(_), Some(_)) => bail!(
            "{label}: holds several columns of lists; name one with --column; it holds {}",
            listing(schema)
        ),
    }
}

/// The names of the columns.
fn listing(schema: &Schema) -> String {
    const LISTED: usize = 20;
    let names = schema.fields().iter().take(LISTED);
    let names: Vec<String> =
        names.map(|field| format!("`{}`", field.name().escape_debug())).collect();
    match schema.fields().len() {
        0 => "no columns".to_owned(),
        n if n > LISTED => format!("{} and {} more", names.join(", "), n - LISTED),
        _ => names.join(", "),
    }
}
