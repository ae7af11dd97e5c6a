//! The page of `cargo dev`: the console at `/` and the contract of the API as text. It fetches nothing from outside.
//!
//! The page calls the API at its own address, because a browser hides the `ETag` of an answer from another one. So this
//! server hands only the routes of the functions on to them: `cargo lambda watch` has paths of its own.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use console::{About, Console, guard};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;

use crate::dynamodb::DynamoDb;
use crate::failure::Failure;
use crate::openapi;
use crate::template::Template;
use crate::watch::LOCALHOST;

#[derive(Clone)]
struct Page {
    client: Client<HttpConnector, Body>,
    functions_port: u16,
}

/// Takes the address of the page, before anything slow is done.
///
/// # Errors
/// The address or its port cannot be had.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::new(format!(
            "The page cannot have port {} of {} ({error}): stop what listens there or choose another with --page-port.",
            address.port(),
            address.ip()
        ))
    })
}

/// Makes the console.
///
/// # Errors
/// The operating system has no random numbers.
pub fn console(functions_port: u16, dynamodb: &DynamoDb) -> Result<Arc<Console>, Failure> {
    let about = About {
        functions_url: format!("http://{LOCALHOST}:{functions_port}"),
        dynamodb: dynamodb.kind.clone(),
        endpoint: dynamodb.endpoint.clone(),
    };
    Console::new(about)
        .map_err(|error| Failure::new(format!("The page gets no token ({error}): the system has no random numbers.")))
}

/// Serves the page, for the functions of the template on `functions_port`, until the runtime ends.
pub fn serve(listener: TcpListener, functions_port: u16, template: &Template, console: &Arc<Console>) {
    let routes = routes(functions_port, template, console);
    tokio::spawn(async move { axum::serve(listener, routes).await });
}

/// The routes of this server: the page, the console and the functions.
pub fn routes(functions_port: u16, template: &Template, console: &Arc<Console>) -> Router {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let page = Page { client, functions_port };
    // A path of the template is one of axum's too: `/devices/{deviceId}`.
    let paths: BTreeSet<_> =
        template.functions.iter().flat_map(|function| &function.routes).map(|route| &route.path).collect();
    let functions = paths.into_iter().fold(Router::new(), |router, path| router.route(path, any(hand_on)));
    functions.route("/openapi.yaml", get(contract)).with_state(page).merge(console.router()).layer(from_fn(guard))
}

/// The contract, with this server as the one to call. A browser shows it, because it is sent as plain text.
async fn contract() -> impl IntoResponse {
    let text = openapi::TEXT.replacen(openapi::SERVER, "/", 1);
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text)
}

/// Gives a request to the functions.
async fn hand_on(State(page): State<Page>, mut request: Request) -> Response {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let authority = format!("{LOCALHOST}:{}", page.functions_port);
    let (Ok(uri), Ok(host)) =
        (Uri::try_from(format!("http://{authority}{path}")), HeaderValue::try_from(authority.as_str()))
    else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    *request.uri_mut() = uri;
    request.headers_mut().insert(HOST, host);
    match page.client.request(request).await {
        Ok(response) => response.into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, format!("the functions do not answer: {error}")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    /// Serves these routes on a port of their own.
    async fn serve(routes: Router) -> SocketAddr {
        let listener = TcpListener::bind((LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("its address");
        tokio::spawn(async move { axum::serve(listener, routes).await });
        address
    }

    /// The page before functions that answer each request with its path.
    async fn page() -> SocketAddr {
        let functions = serve(Router::new().fallback(async |uri: Uri| format!("functions: {uri}"))).await;
        let about = About { functions_url: String::new(), dynamodb: String::new(), endpoint: String::new() };
        let console = Console::new(about).expect("random numbers");
        let template = Template::load(crate::workspace()).expect("template.yaml");
        serve(routes(functions.port(), &template, &console)).await
    }

    async fn send(page: SocketAddr, request: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(page).await.expect("it listens");
        let request = format!("{request} HTTP/1.1\r\nhost: {page}\r\n{headers}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    }

    #[tokio::test]
    async fn only_the_routes_of_the_functions_are_handed_on() {
        let page = page().await;
        for path in ["/devices/lamp-1", "/orders?userId=ann", "/devices/lamp-1/state", "/leases/a%2Fb"] {
            let answer = send(page, &format!("GET {path}"), "").await;
            assert!(answer.contains(&format!("functions: {path}")), "{path}: {answer}");
        }
        for path in [
            "/.rt/device-state/2018-06-01/runtime/invocation/next",
            "/lambda-url/operator",
            "/2015-03-31/functions/dev/invocations",
            "/devices",
            "/console/unknown",
            "//devices/lamp-1",
        ] {
            let answer = send(page, &format!("POST {path}"), "").await;
            assert!(answer.starts_with("HTTP/1.1 40") && !answer.contains("functions:"), "{path}: {answer}");
        }
        assert!(!send(page, "OPTIONS *", "").await.contains("functions:"));
    }

    #[tokio::test]
    async fn another_site_reaches_neither_the_functions_nor_the_contract() {
        let page = page().await;
        for header in ["origin: http://evil.example\r\n", "sec-fetch-site: cross-site\r\n"] {
            for request in ["GET /devices/lamp-1", "PUT /devices/lamp-1", "GET /openapi.yaml", "GET /console/about"] {
                let answer = send(page, request, header).await;
                assert!(answer.starts_with("HTTP/1.1 403"), "{request} {header}: {answer}");
            }
        }
        let contract = send(page, "GET /openapi.yaml", "").await;
        assert!(contract.contains("frame-ancestors 'none'") && contract.contains("\n  - url: /\n"), "{contract}");
    }
}
