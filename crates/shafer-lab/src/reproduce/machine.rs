//! Where numbers come from: the program and the machine.

/// The revision of the source that this program was built from.
pub(crate) fn revision() -> String {
    env!("SHAFER_REVISION").to_owned()
}

/// The processor and how many cores there are.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let model = model.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{model}, {cores} cores, {}", std::env::consts::OS)
}
