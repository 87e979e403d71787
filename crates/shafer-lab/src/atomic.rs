//! Files that appear when they are complete.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use shafer_data::AtomicFile;

/// Writes a file atomically (temporary file, rename).
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).with_context(|| format!("{}: cannot write", path.display()))?;
    Ok(file.commit()?)
}
