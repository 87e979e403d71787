//! How results were made: configuration, program, machine, time.

use serde_json::Value;

/// The key of a configuration that is set if the data differs from the catalogue's checksums.
pub(crate) const OWN_DATA: &str = "own_data";

/// What the results of every experiment say about the run.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) config: Value,
    /// The revision of the source that the program was built from.
    pub(crate) revision: String,
    /// The processor, the number of cores, the operating system.
    pub(crate) machine: String,
    /// The wall-clock time of the whole run.
    pub(crate) wall_seconds: f64,
}

impl Origin {
    /// This program on this machine.
    pub(crate) fn here() -> Self {
        Self {
            config: Value::Null,
            revision: env!("SHAFER_REVISION").to_owned(),
            machine: machine(),
            wall_seconds: 0.0,
        }
    }
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let model = model.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{model}, {cores} cores, {}", std::env::consts::OS)
}
