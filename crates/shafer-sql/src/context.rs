//! The session: the settings and the functions that all processes have in common.

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::functions;

/// Settings that decide the types of results: they are the same on one machine and on a cluster.
pub(crate) fn settings(config: SessionConfig) -> SessionConfig {
    config
        .set_bool("datafusion.execution.parquet.schema_force_view_types", false)
        .set_bool("datafusion.sql_parser.map_string_types_to_utf8view", false)
}

/// A session with our functions.
pub(crate) fn state(config: SessionConfig) -> SessionState {
    SessionStateBuilder::new().with_default_features().with_config(settings(config)).build()
}

/// Registers our functions.
pub(crate) fn with_functions(context: SessionContext) -> SessionContext {
    for function in functions() {
        context.register_udf(function);
    }
    context
}

/// A session on this machine.
pub(crate) fn local(threads: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(threads);
    with_functions(SessionContext::new_with_state(state(config)))
}
