//! The functions of the template, in this process.
//!
//! Each is started on a store of its own, as its [`FUNCTION`](functions::ALL) says, and gets what Lambda would give it:
//! the JSON of an event, a deadline, and its environment of `template.yaml`.

#![expect(clippy::disallowed_methods, reason = "Lambda tells a function its deadline by the clock of the system")]

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{self, Write},
    rc::Rc,
    sync::Arc,
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::Client;
use console::Requests;
use fencepost::{
    Store,
    lambda::{Error, Reporter, respond_and_report, respond_batch_and_report},
};
use functions::function::{Event, Http, Queue};
use lambda_runtime::{Config, Context, LambdaEvent};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::{
    sync::{mpsc, oneshot},
    task::spawn_local,
};

use crate::{
    failure::Failure,
    template::{self, Template},
};

/// The namespace of the metrics. The page shows the lines that have them; nothing collects them.
pub(crate) const METRICS_NAMESPACE: &str = "Fencepost";

/// The variable with the member of a Lambda authorizer's context that names the caller.
const CALLER_VARIABLE: &str = "AUTHORIZER_CALLER";

/// Calls the functions. They run until the last copy of this is gone.
#[derive(Clone)]
pub struct Functions(mpsc::UnboundedSender<Invocation>);

/// An answer of a function as JSON, or why there is none.
pub type Answer = Result<Box<RawValue>, String>;

struct Invocation {
    function: String,
    event: String,
    answer: oneshot::Sender<Option<Answer>>,
}

impl Functions {
    /// Starts the functions of the template on a `DynamoDB`. `requests` learns of each request. Runs them on the current
    /// [`LocalSet`](tokio::task::LocalSet).
    ///
    /// # Errors
    /// A function does not start with its environment in the template, or has no module.
    pub fn start(template: &Template, client: &Client, requests: &Arc<Requests>) -> Result<Self, Failure> {
        let started = template.functions.iter().map(|declared| {
            let one = One::start(declared, client, requests)?;
            Ok((declared.name.clone(), Rc::new(one)))
        });
        let started = started.collect::<Result<BTreeMap<_, _>, Failure>>()?;
        let (sender, mut invocations) = mpsc::unbounded_channel::<Invocation>();
        spawn_local(async move {
            while let Some(Invocation { function, event, answer }) = invocations.recv().await {
                let one = started.get(&function).cloned();
                // A task of its own, as an instance of its own on Lambda: what is slow or panics there concerns no other.
                spawn_local(async move {
                    let told = match one {
                        Some(one) => Some(one.invoke(&event).await.map_err(|error| error.to_string())),
                        None => None,
                    };
                    let _the_client_is_gone = answer.send(told);
                });
            }
        });
        Ok(Functions(sender))
    }

    /// Gives an event to the function with this name. `None` if there is none.
    pub async fn invoke(&self, function: &str, event: String) -> Option<Answer> {
        let (answer, told) = oneshot::channel();
        let invocation = Invocation { function: function.to_owned(), event, answer };
        let sent = self.0.send(invocation);
        let broken = || Some(Err("the function has panicked".to_owned()));
        if sent.is_ok() { told.await.unwrap_or_else(|_| broken()) } else { broken() }
    }
}

/// One function.
struct One {
    config: Arc<Config>,
    timeout: Duration,
    caller: Option<String>,
    reporter: Reporter,
    started: Started,
    invocations: Cell<u64>,
}

enum Started {
    Http(Box<dyn Http>),
    Queue(Box<dyn Queue>),
}

impl One {
    fn start(declared: &template::Function, client: &Client, requests: &Arc<Requests>) -> Result<Self, Failure> {
        let name = &declared.name;
        let function = functions::ALL.iter().find(|function| function.name == name);
        let function =
            function.ok_or_else(|| Failure::new(format!("functions/src/lib.rs has no {name} in ALL: add it.")))?;
        let variables = declared.environment.clone();
        let environment = move |name: &str| variables.get(name).cloned();
        let store = Store::new(client);
        let started = match &function.event {
            Event::Http { start, .. } => start(&store, &environment).map(Started::Http),
            Event::Sqs { start, .. } => start(&store, &environment).map(Started::Queue),
        };
        let wrong = |error| Failure::new(format!("{name} does not start, correct {}: {error}.", template::FILE));
        let started = started.map_err(wrong)?;
        let requests = requests.clone();
        let reporter = Reporter::to(METRICS_NAMESPACE, move |line| say(&requests, line));
        let config = Config { function_name: name.clone(), ..Config::default() };
        let timeout = Duration::from_secs(declared.timeout_seconds.into());
        let caller = environment(CALLER_VARIABLE).filter(|member| !member.is_empty());
        Ok(One { config: Arc::new(config), timeout, caller, reporter, started, invocations: Cell::default() })
    }

    async fn invoke(&self, event: &str) -> Result<Box<RawValue>, Error> {
        match &self.started {
            Started::Http(app) => {
                let event = self.read(event)?;
                let answer = async |app: &&dyn Http, request: &_, call: &_| app.answer(request, call).await;
                json(&respond_and_report(&&**app, &answer, event, self.caller.as_deref(), &self.reporter).await)
            }
            Started::Queue(app) => {
                let event = self.read(event)?;
                let take = async |app: &&dyn Queue, bodies: &[&str], call: &_| app.take(bodies, call).await;
                json(&respond_batch_and_report(&&**app, &take, event, &self.reporter).await?)
            }
        }
    }

    /// The event with what Lambda says of its invocation.
    fn read<T: DeserializeOwned>(&self, event: &str) -> Result<LambdaEvent<T>, Error> {
        let deadline = SystemTime::now() + self.timeout;
        let mut context = Context::default();
        self.invocations.set(self.invocations.get() + 1);
        context.request_id = format!("{}-{}", self.config.function_name, self.invocations.get());
        context.deadline = u64::try_from(deadline.duration_since(SystemTime::UNIX_EPOCH)?.as_millis())?;
        context.env_config = self.config.clone();
        Ok(LambdaEvent::new(serde_json::from_str(event)?, context))
    }
}

fn json(answer: &impl Serialize) -> Result<Box<RawValue>, Error> {
    Ok(serde_json::value::to_raw_value(answer)?)
}

/// Hands on a line of a function: to the page, and to the terminal.
pub(crate) fn say(requests: &Requests, line: String) {
    // The terminal may be gone. The functions go on.
    let _ = writeln!(io::stdout().lock(), "{}", requests.take(line));
}
