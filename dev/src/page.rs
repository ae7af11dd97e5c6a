//! The page of `cargo dev`: the console at `/` and the contract of the API as text. It fetches nothing from outside.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn;
use axum::routing::get;
use console::{Console, guard};
use tokio::net::TcpListener;

use crate::failure::Failure;
use crate::openapi;
use crate::watch::LOCALHOST;

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
pub fn console() -> Result<Arc<Console>, Failure> {
    Console::new()
        .map_err(|error| Failure::new(format!("The page gets no token ({error}): the system has no random numbers.")))
}

/// Serves the page until the runtime ends.
pub fn serve(listener: TcpListener, functions_port: u16, console: &Arc<Console>) {
    let routes = routes(functions_port, console);
    tokio::spawn(async move { axum::serve(listener, routes).await });
}

/// The console and the contract, which names the functions as the server to call. A browser shows it as plain text.
fn routes(functions_port: u16, console: &Arc<Console>) -> Router {
    let server = format!("http://{LOCALHOST}:{functions_port}");
    let contract = openapi::TEXT.replacen(openapi::SERVER, &server, 1);
    let contract = get(async move || ([(CONTENT_TYPE, "text/plain; charset=utf-8")], contract));
    Router::new().route("/openapi.yaml", contract).merge(console.router()).layer(from_fn(guard))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    async fn send(page: SocketAddr, request: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(page).await.expect("it listens");
        let request = format!("{request} HTTP/1.1\r\nhost: {page}\r\n{headers}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    }

    #[tokio::test]
    async fn another_site_reaches_neither_the_console_nor_the_contract() {
        let listener = TcpListener::bind((LOCALHOST, 0)).await.expect("a port");
        let page = listener.local_addr().expect("its address");
        serve(listener, 7, &Console::new().expect("random numbers"));
        for header in ["origin: http://evil.example\r\n", "sec-fetch-site: cross-site\r\n"] {
            for request in ["GET /openapi.yaml", "GET /console/stories"] {
                let answer = send(page, request, header).await;
                assert!(answer.starts_with("HTTP/1.1 403"), "{request} {header}: {answer}");
            }
        }
        let contract = send(page, "GET /openapi.yaml", "").await;
        let server = "\n  - url: http://127.0.0.1:7\n";
        assert!(contract.contains("frame-ancestors 'none'") && contract.contains(server), "{contract}");
    }
}
