//! Files, folders and patterns in the FROM clause.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::TableReference;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use shafer::Method;
use shafer_arrow::LogitLists;
use shafer_data::{Table, TableForm};
use url::Url;

use crate::error::RowError;

/// The most bytes of a batch. A few thousand rows of lists would not stay in the caches.
const BATCH_BYTES: u64 = 8 << 20;
const BATCH_ROWS: u64 = 8192;

/// A table of the FROM clause.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// As it is in the query.
    pub(crate) name: String,
    /// Absolute paths in the order of their names.
    pub(crate) files: Vec<PathBuf>,
    schema: SchemaRef,
    rows: u64,
    bytes: u64,
}

/// The tables that a statement names, checked: there is a file at least, each begins and ends as a Parquet file, and
/// all have the same columns.
pub(crate) fn find(context: &SessionContext, statement: &Statement) -> Result<Vec<Parts>> {
    let references = context
        .state()
        .resolve_table_references(statement)
        .map_err(|error| anyhow::anyhow!("{}", crate::error::line(&error)))?;
    references
        .into_iter()
        .filter(|reference| {
            // Tables of the engine itself.
            reference.schema().is_none_or(|schema| schema != "information_schema")
        })
        .map(|reference| open(&reference))
        .collect()
}

fn open(reference: &TableReference) -> Result<Parts> {
    let TableReference::Bare { table } = reference else {
        bail!("FROM {reference}: is no path; write a path in quotes, as in FROM 'logits/*.parquet'")
    };
    let path = Path::new(&**table);
    if !shafer_data::is_pattern(path) && !path.exists() {
        bail!(
            "FROM '{table}': there is no such file or folder; write a path, as in FROM 'logits/*.parquet'"
        );
    }
    let files = shafer_data::table_files(path)?;
    let mut parts: Option<Parts> = None;
    for file in files {
        let label = file.display().to_string();
        let table_file = Table::open(&file)?;
        if table_file.form() != TableForm::Parquet {
            bail!("{label}: is an Arrow file; a query reads Parquet files");
        }
        let bytes =
            std::fs::metadata(&file).with_context(|| format!("{label}: cannot read"))?.len();
        let file = std::path::absolute(&file).with_context(|| format!("{label}: has no place"))?;
        let rows = table_file.rows() as u64;
        match &mut parts {
            None => {
                parts = Some(Parts {
                    name: table.to_string(),
                    files: vec![file],
                    schema: table_file.schema().clone(),
                    rows,
                    bytes,
                });
            }
            Some(parts) => {
                let first = &parts.files[0];
                if let Some(difference) = difference(table_file.schema(), &parts.schema) {
                    bail!(
                        "{label}: {difference} of the first part {}; all parts must have the same columns",
                        first.display()
                    );
                }
                parts.files.push(file);
                parts.rows += rows;
                parts.bytes += bytes;
            }
        }
    }
    parts.with_context(|| format!("FROM '{table}': there is no file"))
}

/// How the columns of a part differ from those of the first.
fn difference(part: &Schema, first: &Schema) -> Option<String> {
    for field in part.fields() {
        match first.field_with_name(field.name()) {
            Err(_) => return Some(format!("the column {} is not one", field.name())),
            Ok(known) if known.data_type() != field.data_type() => {
                let (name, found, known) = (field.name(), field.data_type(), known.data_type());
                return Some(format!("the column {name} is {found}, unlike {known}"));
            }
            Ok(_) => {}
        }
    }
    let missing =
        first.fields().iter().find(|field| part.field_with_name(field.name()).is_err())?;
    Some(format!("misses the column {}", missing.name()))
}

impl Parts {
    /// Makes the table known under its name.
    pub(crate) fn register(&self, context: &SessionContext) -> Result<()> {
        let urls = self
            .files
            .iter()
            .map(|file| {
                let label = file.display();
                let url = Url::from_file_path(file)
                    .map_err(|()| anyhow::anyhow!("{label}: has no place as a URL"))?;
                ListingTableUrl::try_new(url, None).with_context(|| format!("{label}: no table"))
            })
            .collect::<Result<Vec<_>>>()?;
        // The files are known, whatever their names.
        let options =
            ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension("");
        let config = ListingTableConfig::new_with_multi_paths(urls)
            .with_listing_options(options)
            .with_schema(Arc::clone(&self.schema));
        let table = ListingTable::try_new(config)?;
        context.register_table(TableReference::bare(self.name.clone()), Arc::new(table))?;
        Ok(())
    }

    /// Refuses an output that is a part, or would be one of the folder or the pattern.
    pub(crate) fn check_output(&self, output: &Path) -> Result<()> {
        let label = output.display();
        let place = real(output);
        if self.files.iter().any(|file| real(file) == place) {
            bail!("{label}: is one of the inputs; name another output");
        }
        let from = Path::new(&self.name);
        if from.is_dir() && place.starts_with(real(from)) {
            bail!("{label}: is inside the input folder {}; name one outside of it", self.name);
        }
        if shafer_data::is_pattern(from)
            && let Ok(pattern) = std::path::absolute(from)
            && let Some(pattern) = pattern.to_str()
            && let Ok(pattern) = glob::Pattern::new(pattern)
            && std::path::absolute(output).is_ok_and(|output| pattern.matches_path(&output))
        {
            bail!(
                "{label}: would be an input of the next run, as {} matches it; name another output",
                self.name
            );
        }
        Ok(())
    }

    /// Rows to read at a time.
    pub(crate) fn batch_rows(&self) -> usize {
        let row = self.bytes / self.rows.max(1);
        (BATCH_BYTES / row.max(1)).clamp(16, BATCH_ROWS) as usize
    }

    /// Finds the part and the row of an error by reading all parts once more, one after the other.
    pub(crate) fn blame(&self, refused: Option<&RowError>) -> Result<()> {
        for file in &self.files {
            let table = Table::open(file)?;
            let columns: Vec<usize> = match refused {
                // Of damage anywhere.
                None => (0..table.schema().fields().len()).collect(),
                Some(row) => table.schema().index_of(&row.column).into_iter().collect(),
            };
            if columns.is_empty() {
                continue;
            }
            let mut batches = table.batches(&columns)?;
            let mut first = 0;
            while let Some(batch) = batches.next()? {
                if refused.is_some() && LogitLists::check_type(batch.column(0).data_type()).is_ok()
                {
                    LogitLists::new(batch.column(0))
                        .and_then(|rows| rows.support_size(Method::EVIDENTIAL))
                        .map_err(|error| {
                            let (file, error) = (file.display(), error.after(first));
                            anyhow::anyhow!("{file}: {error}")
                        })?;
                }
                first += batch.num_rows();
            }
        }
        Ok(())
    }

    /// The columns that are lists of logits.
    pub(crate) fn logits(&self) -> Vec<&str> {
        let fields = self.schema.fields().iter();
        let lists = fields.filter(|field| LogitLists::check_type(field.data_type()).is_ok());
        lists.map(|field| field.name().as_str()).collect()
    }
}

/// The absolute path, through all links of what exists.
fn real(path: &Path) -> PathBuf {
    let Ok(path) = std::path::absolute(path) else { return path.to_owned() };
    let existing = path.ancestors().find_map(|existing| {
        let rest = path.strip_prefix(existing).ok()?;
        Some(std::fs::canonicalize(existing).ok()?.join(rest))
    });
    existing.unwrap_or(path)
}
