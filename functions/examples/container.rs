//! The functions with routes in one process on one port, for a container. `container.Dockerfile` beside this file makes an
//! image of it. `docs/beside-sam.md` has the differences between this container and Lambda.
//!
//! Besides the variables of the functions, which `docs/operations.md` lists, it reads `LISTEN`, where it listens
//! (`127.0.0.1:3000` by default), and `CALLER_HEADER`, the header in which the proxy in front of it names the caller.
//! The proxy checks who may call, and takes this header from clients. Without the variable, all callers share their
//! idempotency keys. The default chain of `aws_config` finds the region and the credentials, such as those of a task of ECS.
//!
//! `.ci/container` plays the requests in `events/` on it.
#![allow(clippy::print_stderr, reason = "a service says where it listens")]

use aws_config::BehaviorVersion;
use axum::Router;
use axum::extract::Request;
use axum::middleware::map_request;
use axum::routing::get;
use fencepost::http::{Invocation, Problem};
use fencepost::{Deadline, Source, Store};
use functions::function::{Environment, Event, PROCESS};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long a request may take, as on Lambda. ECS and Kubernetes wait 30 s between SIGTERM and SIGKILL by default.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The routes of all functions, and `/health`, which asks nothing of `DynamoDB`.
fn router(store: &Store, environment: &Environment) -> Result<Router, Source> {
    let mut all = Router::new();
    for function in functions::ALL {
        if let Event::Http { start, .. } = &function.event {
            all = all.merge(start(store, environment)?.reset_fallback());
        }
    }
    let header = environment("CALLER_HEADER").unwrap_or_default();
    let told = move |mut request: Request| {
        let caller = request.headers().get(&header).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let told = Invocation::new(caller, "", Deadline::within(ANSWER_WITHIN));
        request.extensions_mut().insert(told);
        std::future::ready(request)
    };
    Ok(all.fallback(async || Problem::no_such_route()).layer(map_request(told)).route("/health", get(async || "ok\n")))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    let client = aws_sdk_dynamodb::Client::new(&aws_config::load_defaults(BehaviorVersion::latest()).await);
    let router = router(&Store::new(&client), PROCESS)?;
    let address = PROCESS("LISTEN").unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    let mut terminate = signal(SignalKind::terminate())?;
    eprintln!("listening on {}", listener.local_addr()?);
    // No connection is accepted any more, and requests that are being answered get their answers.
    let asked_to_stop = async move {
        let _ = terminate.recv().await;
    };
    Ok(axum::serve(listener, router).with_graceful_shutdown(asked_to_stop).await?)
}
