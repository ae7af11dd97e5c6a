//! The description of a function as a value. Tests, `cargo dev` and the documents derive the rest from it.

use crate::operation::Operation;
use axum::Router;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter};
use fencepost::http::{Invocation, Problem, Request, Response};
use fencepost::lambda::Outcome;
use fencepost::{Call, Source, Store};
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A function.
#[derive(Debug)]
pub struct Function {
    /// The name of its binary. `template.yaml`, `events/` and the pages call it so.
    pub name: &'static str,
    /// The events that Lambda sends it.
    pub event: Event,
    /// The variables that it reads.
    pub variables: &'static [Variable],
}

/// The events of a function. Each kind has a way to start the function without Lambda.
#[derive(Debug)]
pub enum Event {
    /// Requests of an HTTP API.
    Http {
        /// The tag of its operations with its meaning.
        tag: (&'static str, &'static str),
        /// The operations of its routes.
        routes: fn() -> Vec<Operation>,
        /// Starts it on a store. [`routed`] makes the router.
        start: Start<Router>,
    },
    /// Batches of an SQS queue.
    Sqs {
        /// The fate of a message.
        message: &'static str,
        /// Starts it on a store. [`queue`] makes the receiver of its batches.
        start: Start<Queue>,
    },
    /// A schedule.
    Schedule {
        /// What it does each time.
        work: &'static str,
        /// Starts it on a store. [`task`] makes what the schedule runs.
        start: Start<Task>,
    },
}

/// Starts a function on a store, with the environment that it reads.
pub type Start<T> = fn(&Store, &Environment) -> Result<T, Source>;

/// A route: an operation with its handler. `handled!` makes it.
#[derive(Debug)]
pub struct Route<A> {
    /// The operation.
    pub operation: Operation,
    /// The handler.
    pub handle: Handle<A>,
}

/// The handler of an operation, boxed.
pub type Handle<A> = for<'a> fn(&'a A, &'a Request, &'a Call) -> Answering<'a>;

/// The route of an operation and its handler, an `async fn`, which gives the operation its name.
macro_rules! handled {
    ($handler:ident, $operation:expr) => {
        $crate::function::Route {
            operation: $crate::operation::Operation { name: stringify!($handler), ..$operation },
            handle: |app, request, call| Box::pin($handler(app, request, call)),
        }
    };
}
pub(crate) use handled;

/// The answer of a function. Other threads may wait for it.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send + 'a>>;

/// The router of a function.
///
/// Another path is answered by 404, and another method by 405. HEAD is another method. An empty parameter is an invalid
/// one, not another path.
pub fn routed<A: Send + Sync + 'static>(app: A, routes: &'static [Route<A>]) -> Router {
    let app = Arc::new(app);
    let split = |at: &'static str| at.split_once(' ').unwrap_or_default();
    let paths: BTreeSet<_> = routes.iter().map(|route| split(route.operation.at).1).collect();
    let mut router = Router::new().fallback(async || Problem::no_such_route());
    for path in paths {
        let own: Vec<_> = routes.iter().filter(|route| split(route.operation.at).1 == path).collect();
        let allow = own.iter().map(|route| split(route.operation.at).0).collect::<Vec<_>>().join(", ");
        let refused = async || Problem::method_not_allowed(allow);
        let mut methods = MethodRouter::new().fallback(refused.clone()).on(MethodFilter::HEAD, refused);
        for Route { operation, handle } in own {
            let app = Arc::clone(&app);
            let answer =
                async move |invocation: Invocation, request: Request| handle(&app, &request, invocation.call()).await;
            let method = Method::from_bytes(split(operation.at).0.as_bytes()).ok();
            if let Some(filter) = method.and_then(|method| MethodFilter::try_from(method).ok()) {
                methods = methods.on(filter, answer);
            }
        }
        if let Some((before, (_, after))) = path.split_once('{').and_then(|(a, b)| Some((a, b.split_once('}')?))) {
            router = router.route(&format!("{before}{after}"), methods.clone());
        }
        router = router.route(path, methods);
    }
    router
}

/// The operations of a table of routes.
#[must_use]
pub fn listed<A>(routes: &[Route<A>]) -> Vec<Operation> {
    routes.iter().map(|route| route.operation).collect()
}

/// Gives the value of a variable by its name.
pub type Environment = dyn Fn(&str) -> Option<String>;

/// The environment of this process.
pub const PROCESS: &Environment = &|name| std::env::var(name).ok();

/// A variable that a function reads when it starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variable {
    /// The name.
    pub name: &'static str,
    /// The meaning, for the page about operations.
    pub means: &'static str,
    /// The seconds that it has if it is not set. `None` if it names a table, which must be set.
    pub default_seconds: Option<u64>,
}

impl Variable {
    /// The name of a table.
    #[must_use]
    pub const fn table(name: &'static str, means: &'static str) -> Self {
        Variable { name, means, default_seconds: None }
    }

    /// A whole number of seconds.
    #[must_use]
    pub const fn seconds(name: &'static str, default: u64, means: &'static str) -> Self {
        Variable { name, means, default_seconds: Some(default) }
    }

    /// Reads a variable that must be set.
    ///
    /// # Errors
    /// A sentence that names the variable. Set it.
    pub fn required(&self, environment: &Environment) -> Result<String, Source> {
        let value = environment(self.name).filter(|value| !value.is_empty());
        value.ok_or_else(|| format!("{} must be set", self.name).into())
    }

    /// Reads a number of seconds, or gives the default.
    ///
    /// # Errors
    /// A sentence that names the variable, if its value is not a whole number. Correct it.
    pub fn read_seconds(&self, environment: &Environment) -> Result<Duration, Source> {
        let Some(text) = environment(self.name) else {
            return Ok(Duration::from_secs(self.default_seconds.unwrap_or_default()));
        };
        let seconds = text.parse().map_err(|_| format!("{} must be a whole number of seconds", self.name))?;
        Ok(Duration::from_secs(seconds))
    }
}

/// The table of idempotency records.
pub const IDEMPOTENCY_RECORDS_TABLE: Variable =
    Variable::table("IDEMPOTENCY_RECORDS_TABLE", "the table of idempotency records");

/// The table of leases.
pub const LEASES_TABLE: Variable = Variable::table("LEASES_TABLE", "the table of leases");

/// The outcomes of a batch. Other threads may wait for them.
pub type Taking<'a> = Pin<Box<dyn Future<Output = Vec<Outcome>> + Send + 'a>>;

/// A function that was started without Lambda, to take batches.
pub struct Queue(Box<Take>);

type Take = dyn for<'a> Fn(&'a [&'a str], &'a Call) -> Taking<'a> + Send + Sync;

impl Queue {
    /// Takes one batch. Gives one outcome for each message.
    pub async fn take(&self, bodies: &[&str], call: &Call) -> Vec<Outcome> {
        (self.0)(bodies, call).await
    }
}

/// A started function that takes batches. `handle` takes one.
pub fn queue<A, H>(app: A, handle: H) -> Queue
where
    A: Send + Sync + 'static,
    H: for<'a> Fn(&'a A, &'a [&'a str], &'a Call) -> Taking<'a> + Copy + Send + Sync + 'static,
{
    let app = Arc::new(app);
    Queue(Box::new(move |bodies, call| {
        let app = Arc::clone(&app);
        Box::pin(async move { handle(&app, bodies, call).await })
    }))
}

/// A function that was started without Lambda, to run on a schedule.
pub struct Task(Box<Work>);

/// The outcome of scheduled work. Other threads may wait for it.
pub type Running<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

type Work = dyn for<'a> Fn(&'a Call) -> Running<'a> + Send + Sync;

impl Task {
    /// Does the work once.
    pub async fn run(&self, call: &Call) -> Outcome {
        (self.0)(call).await
    }
}

/// A started function that runs on a schedule.
pub fn task<A: Send + Sync + 'static>(app: A, work: for<'a> fn(&'a A, &'a Call) -> Running<'a>) -> Task {
    let app = Arc::new(app);
    Task(Box::new(move |call| {
        let app = Arc::clone(&app);
        let call = call.clone();
        Box::pin(async move { work(&app, &call).await })
    }))
}

impl Function {
    /// The operations of its routes. None for a function without any.
    #[must_use]
    pub fn routes(&self) -> Vec<Operation> {
        match &self.event {
            Event::Http { routes, .. } => routes(),
            Event::Sqs { .. } | Event::Schedule { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_is_missing_or_malformed_is_named() {
        let unset: &Environment = &|_| None;
        let missing = LEASES_TABLE.required(unset).expect_err("it is not set");
        assert_eq!(missing.to_string(), "LEASES_TABLE must be set");
        assert!(LEASES_TABLE.required(&|_| Some(String::new())).is_err());
        assert_eq!(LEASES_TABLE.required(&|name| Some(name.to_lowercase())).ok().as_deref(), Some("leases_table"));
        let seconds = Variable::seconds("X", 300, "");
        assert_eq!(seconds.read_seconds(unset).ok(), Some(Duration::from_mins(5)));
        assert_eq!(seconds.read_seconds(&|_| Some("5".to_owned())).ok(), Some(Duration::from_secs(5)));
        let malformed = seconds.read_seconds(&|_| Some("5s".to_owned())).expect_err("not a number");
        assert_eq!(malformed.to_string(), "X must be a whole number of seconds");
    }
}
