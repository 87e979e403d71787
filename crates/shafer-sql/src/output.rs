//! Results as text for people, JSON, CSV and Parquet.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, Stdout, Write};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use comfy_table::{ContentArrangement, Table};
use datafusion::arrow::array::{Array, ArrayRef, AsArray as _};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, Int32Type, SchemaRef};
use datafusion::arrow::json::WriterBuilder as JsonBuilder;
use datafusion::arrow::json::writer::{JsonArray, LineDelimited, Writer as JsonWriter};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;
use shafer_data::AtomicFile;

/// The rows and the characters of a cell that a table for people has.
const SHOWN_ROWS: usize = 100;
const SHOWN_CELL: usize = 80;

/// The format of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A table for people, of the first rows.
    Table,
    /// One JSON array of objects.
    Json,
    /// An object of JSON a line.
    Jsonl,
    /// Text separated by commas, with a header.
    Csv,
    /// A Parquet file.
    Parquet,
}

/// Where bytes go.
enum Sink {
    Standard(BufWriter<Stdout>),
    File(AtomicFile),
    /// Standard output, but not before the end: a query on a cluster can start again.
    Later(File),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Standard(out) => out.write(bytes),
            Self::File(file) => file.write(bytes),
            Self::Later(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Standard(out) => out.flush(),
            Self::File(file) => file.flush(),
            Self::Later(file) => file.flush(),
        }
    }
}

/// An output that has seen its first batch.
#[allow(clippy::large_enum_variant, reason = "there is one of them")]
enum Writer {
    Table(Shown, Sink),
    Json(JsonWriter<Sink, JsonArray>),
    Jsonl(JsonWriter<Sink, LineDelimited>),
    Csv(csv::Writer<Sink>),
    Parquet(Box<ArrowWriter<Sink>>),
}

/// The rows of a result on their way to a file or standard output. A file appears when it is complete.
pub struct Output {
    label: String,
    format: Format,
    sink: Option<Sink>,
    writer: Option<Writer>,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("label", &self.label).finish_non_exhaustive()
    }
}

impl Output {
    /// To a file.
    pub fn file(path: &Path, format: Format) -> Result<Self> {
        let sink = Some(Sink::File(AtomicFile::create(path)?));
        Ok(Self { label: path.display().to_string(), format, sink, writer: None })
    }

    /// To standard output: at once, or all at the end.
    pub fn standard(format: Format, at_once: bool) -> Result<Self> {
        let label = "standard output".to_owned();
        if format == Format::Parquet {
            bail!("Parquet is not text; name a file with -o");
        }
        let sink = if at_once {
            Sink::Standard(BufWriter::new(io::stdout()))
        } else {
            Sink::Later(tempfile::tempfile().context("cannot create a temporary file")?)
        };
        Ok(Self { label, format, sink: Some(sink), writer: None })
    }

    /// Writes a batch of rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let label = self.label.clone();
        let done = match self.writer(&batch.schema())? {
            Writer::Table(shown, _) => shown.add(batch),
            Writer::Json(writer) => writer.write(batch).map_err(Into::into),
            Writer::Jsonl(writer) => writer.write(batch).map_err(Into::into),
            Writer::Csv(writer) => writer.write(batch).map_err(Into::into),
            Writer::Parquet(writer) => writer.write(batch).map_err(Into::into),
        };
        done.map_err(|error| cannot(&label, &error))
    }

    /// Ends the output. `explains` shows cells in full.
    pub fn finish(mut self, schema: &SchemaRef, explains: bool) -> Result<()> {
        self.writer(schema)?;
        let Self { label, writer: Some(writer), .. } = self else { return Ok(()) };
        let sink = match writer {
            Writer::Table(shown, mut sink) => {
                sink.write_all(shown.text(explains).as_bytes()).map(|()| sink).map_err(Into::into)
            }
            Writer::Json(mut writer) => writer.finish().map_err(Into::into).and_then(|()| {
                let mut sink = writer.into_inner();
                sink.write_all(b"\n")?;
                Ok(sink)
            }),
            Writer::Jsonl(mut writer) => {
                writer.finish().map(|()| writer.into_inner()).map_err(Into::into)
            }
            Writer::Csv(writer) => Ok(writer.into_inner()),
            Writer::Parquet(writer) => writer.into_inner().map_err(Into::into),
        };
        match sink.map_err(|error: anyhow::Error| cannot(&label, &error))? {
            Sink::Standard(mut out) => out.flush().map_err(|error| cannot(&label, &error.into())),
            Sink::File(file) => Ok(file.commit()?),
            Sink::Later(mut file) => file
                .rewind()
                .and_then(|()| io::copy(&mut file, &mut io::stdout().lock()))
                .and_then(|_| io::stdout().flush())
                .map_err(|error| cannot(&label, &error.into())),
        }
    }

    fn writer(&mut self, schema: &SchemaRef) -> Result<&mut Writer> {
        if let Some(sink) = self.sink.take() {
            self.writer = Some(match self.format {
                Format::Table => Writer::Table(Shown::new(schema), sink),
                Format::Json => {
                    Writer::Json(JsonBuilder::new().with_explicit_nulls(true).build(sink))
                }
                Format::Jsonl => {
                    Writer::Jsonl(JsonBuilder::new().with_explicit_nulls(true).build(sink))
                }
                Format::Csv => {
                    check_flat(schema)?;
                    let mut writer = csv::WriterBuilder::new().with_header(true).build(sink);
                    // The header, also of a result without rows.
                    writer.write(&RecordBatch::new_empty(schema.clone()))?;
                    Writer::Csv(writer)
                }
                Format::Parquet => {
                    let properties = WriterProperties::builder()
                        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
                        .build();
                    let writer = ArrowWriter::try_new(sink, schema.clone(), Some(properties));
                    Writer::Parquet(Box::new(writer?))
                }
            });
        }
        self.writer.as_mut().context("an output was used after its end")
    }
}

/// CSV has no lists.
fn check_flat(schema: &SchemaRef) -> Result<()> {
    match schema.fields().iter().find(|field| field.data_type().is_nested()) {
        Some(field) => {
            let name = field.name();
            bail!(
                "CSV cannot hold the lists of the column {name}; use --format jsonl or parquet, or unnest({name})"
            )
        }
        None => Ok(()),
    }
}

fn cannot(label: &str, error: &anyhow::Error) -> anyhow::Error {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    // Told from other errors by its type.
    if kinds.into_iter().any(|cause| cause.kind() == io::ErrorKind::BrokenPipe) {
        return io::Error::from(io::ErrorKind::BrokenPipe).into();
    }
    anyhow::anyhow!("{label}: cannot write: {error}")
}

/// The first rows, as text.
struct Shown {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    all: usize,
}

impl Shown {
    fn new(schema: &SchemaRef) -> Self {
        let header = schema.fields().iter().map(|field| field.name().clone()).collect();
        Self { header, rows: Vec::new(), all: 0 }
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.all += batch.num_rows();
        let take = (SHOWN_ROWS - self.rows.len()).min(batch.num_rows());
        let batch = batch.slice(0, take);
        let columns: Vec<Vec<String>> = batch.columns().iter().map(cells).collect::<Result<_>>()?;
        let row = |row: usize| columns.iter().map(|column| column[row].clone()).collect();
        self.rows.extend((0..take).map(row));
        Ok(())
    }

    fn text(&self, whole: bool) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::UTF8_BORDERS_ONLY);
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(&self.header);
        let cut = |cell: &String| match cell.char_indices().nth(SHOWN_CELL) {
            Some((end, _)) if !whole => format!("{} ...", &cell[..end]),
            _ => cell.clone(),
        };
        table.add_rows(self.rows.iter().map(|row| row.iter().map(cut)));
        let rows = if self.all == 1 { "1 row".to_owned() } else { format!("{} rows", self.all) };
        match self.all - self.rows.len() {
            0 => format!("{table}\n{rows}\n"),
            _ => format!(
                "{table}\n{rows}, of which {} are shown; -o FILE writes all\n",
                self.rows.len()
            ),
        }
    }
}

/// The values of a column as text; a sparse distribution as `class: p` with its classes.
fn cells(column: &ArrayRef) -> Result<Vec<String>> {
    if shafer_arrow::split(column).is_ok()
        && let Some(lists) = column.as_list_opt::<i32>()
        && lists.values().data_type().is_sparse()
    {
        let row = |row: usize| -> Result<String> {
            if lists.is_null(row) {
                return Ok(String::new());
            }
            let entries = lists.value(row);
            let [classes, p] = [entries.as_struct().column(0), entries.as_struct().column(1)];
            let options = FormatOptions::new();
            let p = ArrayFormatter::try_new(p, &options)?;
            let classes = classes.as_primitive::<Int32Type>().values();
            let entry = |(i, class): (usize, &i32)| format!("{class}: {}", rounded(&p, i));
            Ok(classes.iter().enumerate().map(entry).collect::<Vec<_>>().join(", "))
        };
        return (0..lists.len()).map(row).collect();
    }
    let options = FormatOptions::new().with_null("");
    let formatter = ArrayFormatter::try_new(column, &options)?;
    Ok((0..column.len()).map(|row| formatter.value(row).to_string()).collect())
}

/// Four digits of a probability: the table is for people.
fn rounded(p: &ArrayFormatter<'_>, row: usize) -> String {
    let text = p.value(row).to_string();
    text.parse::<f64>().map_or(text, |p| format!("{p:.4}"))
}

trait Sparse {
    fn is_sparse(&self) -> bool;
}

impl Sparse for DataType {
    fn is_sparse(&self) -> bool {
        let DataType::Struct(fields) = self else { return false };
        let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        names == ["class", "p"] && fields[0].data_type() == &Self::Int32
    }
}
