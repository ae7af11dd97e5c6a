//! The functions with routes in one process on one port, for a container. `container.Dockerfile` beside this file makes an
//! image of it. `docs/beside-sam.md` has the differences between this container and Lambda.
//!
//! Besides the variables of the functions, which `docs/operations.md` lists, it reads `LISTEN`, where it listens
//! (`127.0.0.1:3000` by default), and `CALLER_HEADER`, the header in which the proxy in front of it names the caller.
//! The proxy checks who may call, and takes this header from clients. Without the variable, all callers share their
//! idempotency keys. The default chain of `aws_config` finds the region and the credentials, such as those of a task of ECS.
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

#[cfg(test)]
mod tests {
    use super::router;
    use fencepost::Store;
    use fencepost_test::Dynamo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn the_routes_of_several_functions_are_served_on_one_port() {
        let dynamo = Dynamo::new();
        let tables = [("PRODUCTS_TABLE", "productId"), ("ORDERS_TABLE", "orderId"), ("LEASES_TABLE", "leaseKey")];
        for (table, key) in tables.into_iter().chain([("IDEMPOTENCY_RECORDS_TABLE", "recordId")]) {
            dynamo.create_table(table, key); // each table is called by the variable that names it
        }
        let environment = |name: &str| match name {
            "CALLER_HEADER" => Some("x-caller".to_owned()),
            _ => name.ends_with("_TABLE").then(|| name.to_owned()),
        };
        let router = router(&Store::new(&dynamo.client_without_retries()), &environment).expect("it starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let at = listener.local_addr().expect("bound");
        tokio::spawn(async move { axum::serve(listener, router).await });
        for (request, caller, body, status) in [
            ("PUT /products/mug", "ann", r#"{"stock":5,"lowStockAt":2}"#, 201),
            ("POST /products/mug/adjustments", "ann", r#"{"by":-1}"#, 200),
            ("POST /products/mug/adjustments", "ann", r#"{"by":-1}"#, 200), // the same key again
            ("POST /products/mug/adjustments", "bob", r#"{"by":-2}"#, 200), // the key of another caller
            ("PUT /leases/report", "ann", r#"{"holder":"worker-1","ttlSeconds":60}"#, 201),
            ("DELETE /products/mug", "ann", "", 405),
            ("GET /nowhere", "ann", "", 404),
            ("GET /health", "", "", 200),
        ] {
            let head = format!("{request} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\nx-caller: {caller}\r\n");
            let key = if request.starts_with("POST") { "idempotency-key: k-1\r\n" } else { "" };
            let rest = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let mut stream = TcpStream::connect(at).await.expect("it listens");
            stream.write_all(format!("{head}{key}{rest}").as_bytes()).await.expect("it is sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        }
        assert_eq!(dynamo.number("PRODUCTS_TABLE", "mug", "stock"), 2);
    }
}
