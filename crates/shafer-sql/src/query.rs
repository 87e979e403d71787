//! One query, from text to batches of rows.

use std::num::NonZero;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt as _;

use crate::tables::{self, Parts};
use crate::{context, error};

/// A query and where it runs.
#[derive(Clone, Debug)]
pub struct Query {
    /// The text, with paths in quotes in the FROM clause.
    pub sql: String,
    /// The number of threads.
    pub threads: usize,
    /// The scheduler of a cluster, as `host:port`; `None` for this machine.
    #[cfg(feature = "cluster")]
    pub scheduler: Option<String>,
}

impl Query {
    /// A query on all processors of this machine.
    ///
    /// ```
    /// assert!(shafer_sql::Query::new("SELECT 1").threads >= 1);
    /// ```
    pub fn new(sql: &str) -> Self {
        Self {
            sql: sql.to_owned(),
            threads: std::thread::available_parallelism().map_or(1, NonZero::get),
            #[cfg(feature = "cluster")]
            scheduler: None,
        }
    }
}

/// What a query gave.
#[derive(Clone, Debug)]
pub struct Counts {
    /// The number of rows.
    pub rows: u64,
    /// The columns, also if there are no rows.
    pub schema: SchemaRef,
    /// Whether the result is text for people: a plan.
    pub explains: bool,
}

/// A query whose tables are there.
pub struct Prepared {
    context: SessionContext,
    statement: Statement,
    parts: Vec<Parts>,
    #[cfg(feature = "cluster")]
    on_cluster: bool,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("parts", &self.parts).finish_non_exhaustive()
    }
}

/// A part of the cluster went away while it worked on a query. Another run can succeed.
#[derive(Clone, Debug)]
pub struct Lost(pub(crate) String);

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Lost {}

impl Query {
    /// Parses the query and opens its tables.
    pub async fn prepare(&self) -> Result<Prepared> {
        let context = self.session().await?;
        let statement = parse(&context, &self.sql)?;
        let parts = tables::find(&context, &statement)?;
        if let Some(rows) = parts.iter().map(Parts::batch_rows).min() {
            let state = context.state_ref();
            let mut state = state.write();
            let options = state.config_mut().options_mut();
            options.set("datafusion.execution.batch_size", &rows.to_string())?;
        }
        for parts in &parts {
            parts.register(&context)?;
        }
        Ok(Prepared {
            context,
            statement,
            parts,
            #[cfg(feature = "cluster")]
            on_cluster: self.scheduler.is_some(),
        })
    }

    #[cfg(feature = "cluster")]
    async fn session(&self) -> Result<SessionContext> {
        match &self.scheduler {
            Some(scheduler) => crate::cluster::session(scheduler).await,
            None => Ok(context::local(self.threads)),
        }
    }

    #[cfg(not(feature = "cluster"))]
    #[allow(clippy::unused_async, reason = "a session on a cluster is not at once")]
    async fn session(&self) -> Result<SessionContext> {
        Ok(context::local(self.threads))
    }
}

impl Prepared {
    /// Refuses an output that is one of the inputs, or lies inside an input folder.
    pub fn check_output(&self, output: &Path) -> Result<()> {
        self.parts.iter().try_for_each(|parts| parts.check_output(output))
    }

    /// Runs the query: calls `take` with each batch of rows. The first error of either ends it.
    pub async fn run(
        &self,
        take: &mut (dyn FnMut(&RecordBatch) -> Result<()> + Send),
    ) -> Result<Counts> {
        let failed = |problem: DataFusionError| self.failed(&problem);
        let (mut stream, explains) = self.start().await.map_err(failed)?;
        let mut counts = Counts { rows: 0, schema: stream.schema(), explains };
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(failed)?;
            counts.rows += batch.num_rows() as u64;
            take(&batch)?;
        }
        Ok(counts)
    }

    async fn start(&self) -> datafusion::common::Result<(SendableRecordBatchStream, bool)> {
        let plan = self.context.state().statement_to_plan(self.statement.clone()).await?;
        // Nothing but queries, in an EXPLAIN too.
        let only = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false);
        only.with_allow_statements(false).verify_plan(&plan)?;
        let explains = matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
        let stream = self.context.execute_logical_plan(plan).await?.execute_stream().await?;
        Ok((stream, explains))
    }

    /// An error of the engine.
    fn failed(&self, problem: &DataFusionError) -> anyhow::Error {
        let line = error::line(problem);
        // What the scheduler says of a job is its last word: it has tried again itself. Everything else that fails while
        // a cluster works is a connection.
        #[cfg(feature = "cluster")]
        if self.on_cluster && matches!(problem.find_root(), DataFusionError::Execution(_)) {
            return match line.strip_prefix("Job ") {
                Some(verdict) => anyhow!("the cluster failed: job {verdict}"),
                None => Lost(format!("lost a part of the cluster: {line}")).into(),
            };
        }
        located(problem, line, &self.parts)
    }
}

/// Parses a query, and nothing but a query.
fn parse(context: &SessionContext, sql: &str) -> Result<Statement> {
    let state = context.state();
    let dialect = state.config().options().sql_parser.dialect;
    let statement =
        state.sql_to_statement(sql, &dialect).map_err(|problem| anyhow!(error::line(&problem)))?;
    match &statement {
        Statement::Explain(_) => Ok(statement),
        Statement::Statement(inner) if matches!(**inner, ast::Statement::Query(_)) => Ok(statement),
        _ => {
            bail!("this is no query; write SELECT ... FROM 'path', and -o FILE to keep the result")
        }
    }
}

/// An error of the engine with its place: the part that is damaged, or the row that a function refuses.
fn located(problem: &DataFusionError, line: String, parts: &[Parts]) -> anyhow::Error {
    let refused = error::refused(problem);
    let of_data = matches!(
        problem.find_root(),
        DataFusionError::ParquetError(_)
            | DataFusionError::ArrowError(..)
            | DataFusionError::External(_)
            | DataFusionError::ExecutionJoin(_)
            | DataFusionError::IoError(_)
            | DataFusionError::ObjectStore(_)
    );
    if of_data {
        for table in parts {
            if let Err(place) = table.blame(refused) {
                return match refused {
                    None => place,
                    Some(_) => anyhow!("{line}; the first such row is {place}"),
                };
            }
        }
    }
    if refused.is_some() {
        return anyhow!("{line} (the row of a batch)");
    }
    let lists: Vec<&str> = parts.iter().flat_map(Parts::logits).collect();
    match problem.find_root() {
        // The answer to most calls with a wrong column.
        DataFusionError::Plan(text)
            if text.contains("does not exist; call") && !lists.is_empty() =>
        {
            anyhow!("{line}; lists of logits are {}", lists.join(", "))
        }
        _ => anyhow!(line),
    }
}
