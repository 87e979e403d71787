//! Windows of a scene as a network sees them.

use anyhow::Result;
use shafer_data::dataset::{Differences, Window, WindowShape};
use shafer_nets::behaviour::{NetworkConfig, Observation};

/// The windows of a network's history and future, with at least `before` steps before the present and `after` steps after
/// it.
pub(crate) fn window_shape(network: &NetworkConfig, before: usize, after: usize) -> WindowShape {
    WindowShape {
        history: network.history_steps,
        least_history: before.min(network.history_steps),
        future: network.future_steps,
        least_future: after,
        radius: network.position_scale,
        differences: Differences::Backward,
    }
}

pub(crate) fn observations(windows: &[Window]) -> Result<Vec<Observation>> {
    let observation = |w: &Window| Ok(Observation::new(&w.history, &w.neighbours)?);
    windows.iter().map(observation).collect()
}
