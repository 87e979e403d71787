//! Where networks compute.

use burn::tensor::Device;

use crate::{Error, Result};

/// The CPU: fused loops, and the same bits in every run.
pub fn cpu() -> Device {
    Device::flex()
}

/// The device of this name: `cpu` or `gpu`.
///
/// `gpu` needs the cargo feature `gpu` and a Vulkan driver.
///
/// # What holds on a GPU
///
/// A training on a GPU is *not* bit-equal to the same training on the CPU, on another GPU, or to its own
/// repetition: sums are rounded in another order, and some of them in an order that changes from run to
/// run. Initial parameters, order of the examples and noise are the same, because the CPU draws them. A
/// training that was saved on one device can be resumed on another.
///
/// ```
/// assert_eq!(shafer_nets::device("cpu")?, shafer_nets::cpu());
/// assert_eq!(
///     shafer_nets::device("tpu").unwrap_err().to_string(),
///     r#"device must be "cpu" or "gpu", but is "tpu""#,
/// );
/// # Ok::<(), shafer_nets::Error>(())
/// ```
pub fn device(name: &str) -> Result<Device> {
    match name {
        "cpu" => Ok(cpu()),
        "gpu" => gpu(),
        _ => Err(Error::config("device", format!(r#"must be "cpu" or "gpu", but is {name:?}"#))),
    }
}

#[cfg(not(feature = "gpu"))]
fn gpu() -> Result<Device> {
    Err(Error::config(
        "device",
        "gpu is not part of this build: compile it with the cargo feature gpu, or use cpu",
    ))
}

#[cfg(feature = "gpu")]
fn gpu() -> Result<Device> {
    use std::sync::LazyLock;

    use burn::tensor::wgpu::WgpuBackend;

    // An adapter can be initialised once in a process. Vulkan is pinned: without it, burn falls back to
    // OpenGL silently, which nothing here is tested on.
    static GPU: LazyLock<Result<Device>> = LazyLock::new(|| {
        Device::wgpu_options().graphics_api(WgpuBackend::Vulkan).init().map_err(|error| {
            let error = error.to_string();
            let reason = error.lines().next().unwrap_or_default();
            Error::config(
                "device",
                format!("gpu was not found: install a Vulkan driver, or use cpu ({reason})"),
            )
        })
    });
    GPU.clone()
}
