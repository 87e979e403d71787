//! The same query on several machines: Ballista with our functions in its scheduler and its executors.
//!
//! All processes read the tables themselves, by the paths of the query. There is no authentication and no encryption:
//! everybody who reaches a port can run queries.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use ballista::prelude::{SessionConfigExt as _, SessionContextExt as _};
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion::execution::registry::FunctionRegistry as _;
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::{SessionConfig, SessionContext};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::{context, functions};

/// The port of the scheduler.
pub const PORT: u16 = 50050;

/// Partitions of a stage. More than processors, so that little is lost with an executor.
const PARTITIONS: usize = 16;
/// The largest message: a batch of rows.
const MESSAGE: u32 = 256 << 20;
/// Executors pull tasks: with push scheduling they would have to reach the scheduler's advertised address, which may be 0.0.0.0.
const POLICY: TaskSchedulingPolicy = TaskSchedulingPolicy::PullStaged;
/// The executor timeout. Executors poll at least every 5 s.
const DEAD_AFTER_SECONDS: u64 = 20;
const CHECK_EXECUTORS_SECONDS: u64 = 2;
/// How long a query waits for an executor if none is left.
const WAIT_FOR_EXECUTORS_SECONDS: u64 = 30;
/// Connections: how often and how long each time.
const ATTEMPTS: usize = 5;
const CONNECT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(500);
/// An executor whose scheduler is away for so long ends.
const SCHEDULER_AWAY: usize = 12;
const CHECK_SCHEDULER: Duration = Duration::from_secs(5);

fn settings() -> SessionConfig {
    context::settings(SessionConfig::new_with_ballista())
        .with_target_partitions(PARTITIONS)
        .with_ballista_grpc_client_max_message_size(MESSAGE as usize)
        .set_u64("ballista.client.grpc_http2_keepalive_interval_seconds", 10)
}

/// A state of a session with our functions.
fn state(config: SessionConfig) -> datafusion::common::Result<SessionState> {
    let mut state = ballista_core::utils::default_session_builder(config)?;
    for function in functions() {
        state.register_udf(Arc::new(function))?;
    }
    Ok(state)
}

/// A session whose queries run on the cluster.
pub(crate) async fn session(scheduler: &str) -> Result<SessionContext> {
    reach(scheduler).await?;
    let url = format!("df://{scheduler}");
    let session = SessionContext::remote_with_state(&url, state(settings())?).await?;
    // It has forgotten them: Ballista sets its own functions.
    Ok(context::with_functions(session))
}

/// Fails if there is no scheduler.
async fn reach(scheduler: &str) -> Result<()> {
    let Some((host, port)) = scheduler.rsplit_once(':') else {
        bail!("--scheduler {scheduler}: has no port; write HOST:{PORT}")
    };
    let port: u16 =
        port.parse().with_context(|| format!("--scheduler {scheduler}: {port} is not a port"))?;
    let mut problem = String::new();
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            sleep(PAUSE).await;
        }
        problem = match timeout(CONNECT, TcpStream::connect((host, port))).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
    }
    Err(anyhow!("no scheduler at {scheduler} ({problem}); start one with `shafer-sql scheduler`"))
}

/// A scheduler.
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port; 0 is any that is free.
    pub port: u16,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self { host: IpAddr::V4(Ipv4Addr::LOCALHOST), port: PORT }
    }
}

impl Scheduler {
    /// Runs until it fails. Calls `ready` with its address.
    pub async fn run(&self, ready: impl FnOnce(String)) -> Result<()> {
        let listener = tokio::net::TcpListener::bind((self.host, self.port))
            .await
            .with_context(|| format!("cannot listen at {}:{}", self.host, self.port))?;
        let address = listener.local_addr()?;
        let config = SchedulerConfig {
            bind_host: self.host.to_string(),
            bind_port: address.port(),
            external_host: self.host.to_string(),
            scheduling_policy: POLICY,
            executor_timeout_seconds: DEAD_AFTER_SECONDS,
            expire_dead_executor_interval_seconds: CHECK_EXECUTORS_SECONDS,
            no_executors_grace_period_seconds: WAIT_FOR_EXECUTORS_SECONDS,
            grpc_server_max_decoding_message_size: MESSAGE,
            grpc_server_max_encoding_message_size: MESSAGE,
            grpc_client_max_message_size: MESSAGE,
            override_config_producer: Some(Arc::new(settings)),
            override_session_builder: Some(Arc::new(state)),
            ..SchedulerConfig::default()
        };
        let cluster = BallistaCluster::new_from_config(&config).await?;
        let scheduler = create_scheduler::<
            datafusion_proto::protobuf::LogicalPlanNode,
            datafusion_proto::protobuf::PhysicalPlanNode,
        >(cluster, Arc::new(config))
        .await?;
        ready(address.to_string());
        Ok(start_grpc_service_with_listener(listener, scheduler).await?)
    }
}

/// An executor.
#[derive(Clone, Debug)]
pub struct Executor {
    /// The scheduler, as `host:port`.
    pub scheduler: String,
    /// The address to listen on.
    pub host: IpAddr,
    /// The name or address by which others reach it; `None` for that which the scheduler sees.
    pub public_host: Option<String>,
    /// The number of tasks at a time.
    pub threads: usize,
    /// The folder of results between stages; `None` for a temporary one.
    pub work_folder: Option<PathBuf>,
}

impl Executor {
    /// Runs until it is stopped, or its scheduler is gone. Calls `ready` when it has begun.
    pub async fn run(&self, ready: impl FnOnce(String)) -> Result<()> {
        reach(&self.scheduler).await?;
        let (scheduler_host, scheduler_port) =
            self.scheduler.rsplit_once(':').context("the scheduler has no port")?;
        let temporary = match self.work_folder {
            Some(_) => None,
            None => Some(tempfile::Builder::new().prefix("shafer-executor-").tempdir()?),
        };
        let folder = match (&self.work_folder, &temporary) {
            (Some(folder), _) => folder.clone(),
            (None, Some(temporary)) => temporary.path().to_owned(),
            (None, None) => bail!("no folder for results between stages"),
        };
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("{}: cannot create the folder", folder.display()))?;
        let port = free_port(self.host)?;
        let config = ExecutorProcessConfig {
            bind_host: self.host.to_string(),
            external_host: self.public_host.clone(),
            port,
            task_scheduling_policy: POLICY,
            scheduler_host: scheduler_host.to_owned(),
            scheduler_port: scheduler_port.parse().context("the scheduler has no port")?,
            vcores: self.threads,
            work_dir: Some(folder.display().to_string()),
            grpc_max_decoding_message_size: MESSAGE,
            grpc_max_encoding_message_size: MESSAGE,
            override_config_producer: Some(Arc::new(settings)),
            override_function_registry: Some(Arc::new(BallistaFunctionRegistry::from(&state(
                settings(),
            )?))),
            ..ExecutorProcessConfig::default()
        };
        ready(format!("{}:{port}", self.host));
        tokio::select! {
            ended = start_executor_process(Arc::new(config)) => Ok(ended?),
            gone = self.watch() => Err(gone),
        }
    }

    /// Ends when the scheduler has been away for a minute.
    async fn watch(&self) -> anyhow::Error {
        let mut away = 0;
        loop {
            sleep(CHECK_SCHEDULER).await;
            match timeout(CONNECT, TcpStream::connect(&self.scheduler)).await {
                Ok(Ok(_)) => away = 0,
                _ => away += 1,
            }
            if away == SCHEDULER_AWAY {
                let seconds = CHECK_SCHEDULER.as_secs() * SCHEDULER_AWAY as u64;
                let scheduler = &self.scheduler;
                return anyhow!(
                    "no answer of the scheduler at {scheduler} for {seconds} s; start it again, and the executors"
                );
            }
        }
    }
}

/// A port that was free a moment ago: Ballista has to be told its number.
fn free_port(host: IpAddr) -> Result<u16> {
    let listener =
        TcpListener::bind((host, 0)).with_context(|| format!("cannot listen at {host}"))?;
    Ok(listener.local_addr()?.port())
}
