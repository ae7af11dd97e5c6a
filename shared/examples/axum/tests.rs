//! The routes of the service over a socket, on the engine of `fencepost-test`.

use super::router;
use fencepost::Store;
use fencepost::http::Items;
use fencepost_test::Engine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn ask(address: &str, method: &str, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

fn header<'a>(answer: &'a str, name: &str) -> &'a str {
    let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("{name} in {answer}"))
}

#[tokio::test]
async fn a_room_is_opened_and_visited_once_and_refusals_are_problems() {
    let store = Store::new(&Engine::embedded(&[("Devices", "deviceId"), ("Records", "recordId")]).client());
    let visits = Items::with_idempotency(store.table("Devices"), store.idempotency("Records"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    tokio::spawn(async { axum::serve(listener, router(visits)).await.expect("serves") });

    assert!(ask(&address, "GET", "/health", "").await.starts_with("HTTP/1.1 200"));
    let opened = ask(&address, "PUT", "/visits/lobby", "").await;
    assert!(opened.starts_with("HTTP/1.1 201"), "{opened}");
    assert_eq!(header(&opened, "location"), "/visits/lobby");
    for _ in 0..2 {
        let visited = ask(&address, "POST", "/visits/lobby", "idempotency-key: visit-1\r\n").await;
        assert!(visited.starts_with("HTTP/1.1 200") && visited.contains(r#""count":1"#), "{visited}");
    }
    let stale = format!("if-match: {}\r\n", header(&opened, "etag"));
    for (method, path, headers, status, code) in [
        ("PUT", "/visits/lobby", "", "409", "room_exists"),
        ("POST", "/visits/nowhere", "", "404", "room_not_found"),
        ("POST", "/visits/a%20b", "", "400", "invalid_id"),
        ("POST", "/visits/lobby", stale.as_str(), "412", "version_conflict"),
        ("DELETE", "/visits/lobby", "", "428", "condition_required"),
        ("PATCH", "/visits/lobby", "", "405", "method_not_allowed"),
        ("GET", "/", "", "404", "no_such_route"),
    ] {
        let refused = ask(&address, method, path, headers).await;
        assert!(refused.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path}: {refused}");
        assert_eq!(header(&refused, "content-type"), "application/problem+json");
        assert!(refused.contains(&format!(r#""code":"{code}""#)), "{refused}");
    }
}
