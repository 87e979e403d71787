//! Predictions as a file, frame by frame: memory does not grow with the number of frames.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use shafer_data::{AtomicFile, Column, TableWriter};

use super::Prediction;
use super::map::figures;
use super::table::PredictionTable;
use crate::drawing::Background;

/// Rows of a Parquet file that are written at once.
const HELD: usize = 1 << 16;

/// A file that is written atomically.
pub(crate) struct PredictionFile {
    label: String,
    kind: Kind,
}

/// Marks pictures that this program wrote, and may replace.
pub(crate) const SVG_MARK: &str = "<!-- shafer predict -->";

enum Kind {
    Json(JsonPredictions<AtomicFile>),
    Csv(AtomicFile),
    Parquet { writer: Box<TableWriter>, held: PredictionTable },
    Svg(AtomicFile),
}

impl PredictionFile {
    /// Begins a file in the format of its ending, for one frame or for all.
    pub(crate) fn create(path: &Path, all: bool) -> Result<Self> {
        let label = path.display().to_string();
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let kind = match ending.as_deref() {
            Some("json") => Kind::Json(JsonPredictions::new(AtomicFile::create(path)?, all)),
            Some("csv") => {
                let mut file = AtomicFile::create(path)?;
                let columns = PredictionTable::default().columns();
                let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
                writeln!(file, "{}", names.join(",")).with_context(|| cannot_write(&label))?;
                Kind::Csv(file)
            }
            Some("parquet") => {
                let held = PredictionTable::default();
                let writer = TableWriter::create(path, &PredictionTable::default().columns())?;
                Kind::Parquet { writer: Box::new(writer), held }
            }
            Some("svg") if all => bail!(
                "{label}: a picture has one frame; name one with --frame, or step through all with \
                 --html"
            ),
            Some("svg") => Kind::Svg(AtomicFile::create(path)?),
            _ => bail!("{label}: a prediction is written as .json, .csv, .parquet or .svg"),
        };
        Ok(Self { label, kind })
    }

    pub(crate) fn write(&mut self, prediction: &Prediction) -> Result<()> {
        let written = match &mut self.kind {
            Kind::Json(json) => json.write(prediction),
            Kind::Csv(file) => {
                let mut table = PredictionTable::default();
                table.add(prediction);
                csv(file, &table.columns())
            }
            Kind::Parquet { writer, held } => {
                held.add(prediction);
                if held.rows() >= HELD {
                    writer.write(&std::mem::take(held).columns())?;
                }
                Ok(())
            }
            Kind::Svg(file) => {
                let predictions = std::slice::from_ref(prediction);
                for figure in figures(predictions) {
                    let svg = figure.drawing().svg(&figure.title, Background::LightOrDark)?;
                    writeln!(file, "{SVG_MARK}\n{svg}")
                        .with_context(|| cannot_write(&self.label))?;
                }
                Ok(())
            }
        };
        written.with_context(|| cannot_write(&self.label))
    }

    pub(crate) fn finish(self) -> Result<()> {
        match self.kind {
            Kind::Json(json) => {
                json.finish().with_context(|| cannot_write(&self.label))?.commit()?;
            }
            Kind::Csv(file) | Kind::Svg(file) => file.commit()?,
            Kind::Parquet { mut writer, held } => {
                if held.rows() > 0 {
                    writer.write(&held.columns())?;
                }
                writer.finish()?;
            }
        }
        Ok(())
    }
}

fn cannot_write(label: &str) -> String {
    format!("{label}: cannot write")
}

/// A prediction as JSON; or several as an array, one a line.
pub(crate) struct JsonPredictions<W> {
    out: W,
    list: bool,
    count: usize,
}

impl<W: Write> JsonPredictions<W> {
    pub(crate) fn new(out: W, list: bool) -> Self {
        Self { out, list, count: 0 }
    }

    pub(crate) fn write(&mut self, prediction: &Prediction) -> io::Result<()> {
        if self.list {
            self.out.write_all(if self.count == 0 { b"[" } else { b",\n" })?;
        }
        self.count += 1;
        serde_json::to_writer(&mut self.out, prediction).map_err(io::Error::from)
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(if self.list { b"]\n" } else { b"\n" })?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// NaN is an empty field; text is quoted, since joint classes contain commas.
fn csv(out: &mut impl Write, columns: &[(&str, Column)]) -> io::Result<()> {
    let rows = columns.first().map_or(0, |(_, column)| match column {
        Column::Integers(values) => values.len(),
        Column::Numbers(values) => values.len(),
        Column::Words(values) => values.len(),
    });
    for row in 0..rows {
        for (place, (_, column)) in columns.iter().enumerate() {
            if place > 0 {
                out.write_all(b",")?;
            }
            match column {
                Column::Integers(values) => write!(out, "{}", values[row])?,
                Column::Numbers(values) if values[row].is_nan() => {}
                Column::Numbers(values) => write!(out, "{}", values[row])?,
                Column::Words(values) => write!(out, "\"{}\"", values[row].replace('"', "\"\""))?,
            }
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}
