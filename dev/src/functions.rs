//! The functions of the template, in this process.
//!
//! Each is started on a store of its own, as its [`FUNCTION`](functions::ALL) says. It gets the same input as from
//! Lambda: the JSON of an event, a deadline and its environment of `template.yaml`.

#![expect(clippy::disallowed_methods, reason = "Lambda tells a function its deadline by the clock of the system")]

use std::{
    collections::BTreeMap,
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::Client;
use axum::Router;
use fencepost::{
    Source, Store,
    testing::{Reporter, answer_batch, answer_request, run_scheduled},
};
use functions::function::{Event, Queue, Task};
use lambda_runtime::{Config, Context, LambdaEvent};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    failure::Failure,
    template::{self, Template},
};

/// Without a namespace, a line has no directives for `CloudWatch`.
const NO_METRICS: &str = "";

/// The variable for the caller's member of a Lambda authorizer's context.
const CALLER_VARIABLE: &str = "AUTHORIZER_CALLER";

/// The functions by their names.
#[derive(Clone)]
pub struct Functions(Arc<BTreeMap<String, Arc<Started>>>);

/// An answer of a function as JSON, or why there is none.
pub type Answer = Result<Box<RawValue>, String>;

impl Functions {
    /// Starts the functions of the template on a `DynamoDB`. `write` takes the line about each request.
    ///
    /// # Errors
    /// A function does not start with its environment in the template, or has no module.
    pub fn start(
        template: &Template,
        client: &Client,
        write: impl Fn(String) + Clone + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        let started = template.functions.iter().map(|declared| {
            let reporter = Reporter::to(NO_METRICS, write.clone());
            let started = Started::new(declared, client, reporter)?;
            Ok((declared.name.clone(), Arc::new(started)))
        });
        Ok(Functions(Arc::new(started.collect::<Result<_, Failure>>()?)))
    }

    /// Gives an event to the function with this name. `None` if there is none.
    pub async fn invoke(&self, function: &str, event: Box<RawValue>) -> Option<Answer> {
        let function = self.0.get(function)?.clone();
        // A task of its own, as an instance of its own on Lambda: it goes on without its client, and may panic.
        let answered = tokio::spawn(async move { function.invoke(event).await.map_err(|error| error.to_string()) });
        Some(answered.await.unwrap_or_else(|_| Err("the function has panicked".to_owned())))
    }
}

/// A function that was started.
struct Started {
    app: App,
    config: Arc<Config>,
    timeout: Duration,
    caller: Option<String>,
    reporter: Reporter,
    invocations: AtomicU64,
}

enum App {
    Http(Router),
    Queue(Queue),
    Task(Task),
}

impl Started {
    fn new(declared: &template::Function, client: &Client, reporter: Reporter) -> Result<Self, Failure> {
        let name = &declared.name;
        let function = functions::ALL.iter().find(|function| function.name == name);
        let function =
            function.ok_or_else(|| Failure::new(format!("functions/src/lib.rs has no {name} in ALL: add it.")))?;
        let variables = declared.environment.clone();
        let environment = move |name: &str| variables.get(name).cloned();
        let store = Store::new(client);
        let app = match &function.event {
            Event::Http { start, .. } => start(&store, &environment).map(App::Http),
            Event::Sqs { start, .. } => start(&store, &environment).map(App::Queue),
            Event::Schedule { start, .. } => start(&store, &environment).map(App::Task),
        };
        let wrong = |error| Failure::new(format!("{name} does not start, correct {}: {error}.", template::FILE));
        let app = app.map_err(wrong)?;
        let config = Arc::new(Config { function_name: name.clone(), ..Config::default() });
        let timeout = Duration::from_secs(declared.timeout_seconds.into());
        let caller = environment(CALLER_VARIABLE).filter(|member| !member.is_empty());
        Ok(Started { app, config, timeout, caller, reporter, invocations: AtomicU64::new(0) })
    }

    async fn invoke(&self, event: Box<RawValue>) -> Result<Box<RawValue>, Source> {
        let event = LambdaEvent::new(event, self.context()?);
        match &self.app {
            App::Http(router) => json(&answer_request(router, event, self.caller.as_deref(), &self.reporter).await?),
            App::Queue(queue) => json(&answer_batch(queue, &Queue::take, event, &self.reporter).await?),
            App::Task(task) => json(&run_scheduled(task, &Task::run, event, &self.reporter).await?),
        }
    }

    /// The facts from Lambda about an invocation.
    fn context(&self) -> Result<Context, Source> {
        let deadline = SystemTime::now() + self.timeout;
        let mut context = Context::default();
        context.request_id = format!("{}-{}", self.config.function_name, self.invocations.fetch_add(1, Relaxed) + 1);
        context.deadline = u64::try_from(deadline.duration_since(SystemTime::UNIX_EPOCH)?.as_millis())?;
        context.env_config = self.config.clone();
        Ok(context)
    }
}

fn json(answer: &impl Serialize) -> Result<Box<RawValue>, Source> {
    Ok(serde_json::value::to_raw_value(answer)?)
}

/// Prints the line of a function.
pub fn say(line: &str) {
    // The terminal may be gone. The functions go on.
    let _ = writeln!(io::stdout().lock(), "{line}");
}
