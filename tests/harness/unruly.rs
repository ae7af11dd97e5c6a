//! An engine behind a server that breaks the rules of HTTP/1.1, byte by byte, on connections that stay open.

use super::engine::Engine;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How a request is answered. The engine has carried it out in each case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// As it should be.
    Well,
    /// Correct, after a `100 Continue` without a request for it.
    Continued,
    /// As it should be, in chunks.
    InChunks,
    /// Not at all. The answer waits, and leaves before the answer to the next request on this connection.
    Withheld,
    /// The connection is reset without an answer.
    Reset,
    /// Half of the body, and then the connection is closed.
    HalfABody,
    /// Half of the body in a chunk, and then the connection is closed.
    HalfOfTheChunks,
    /// The length is less than the body has. The rest stays on the connection.
    TooShort,
    /// The length is 0, without a body.
    Empty,
    /// The answer, followed by one more without a request: `{}`, which means success of a write and no item of a read.
    AndAnother,
}

impl Manner {
    pub const ALL: [Manner; 10] = [
        Manner::Well,
        Manner::Continued,
        Manner::InChunks,
        Manner::Withheld,
        Manner::Reset,
        Manner::HalfABody,
        Manner::HalfOfTheChunks,
        Manner::TooShort,
        Manner::Empty,
        Manner::AndAnother,
    ];

    /// The bytes sent for this answer, with the state of the connection after it.
    fn sent(self, status: u16, body: &str) -> (String, Then) {
        let half = &body[..body.len() / 2];
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        let chunked = "Transfer-Encoding: chunked";
        let whole = || answer(status, &length(body.len()), body);
        match self {
            Manner::Well => (whole(), Then::Open),
            Manner::Continued => (format!("HTTP/1.1 100 Continue\r\n\r\n{}", whole()), Then::Open),
            Manner::InChunks => {
                let chunks = format!("{}{}0\r\n\r\n", chunk(half), chunk(&body[half.len()..]));
                (answer(status, chunked, &chunks), Then::Open)
            }
            Manner::Withheld => (whole(), Then::Withheld),
            Manner::Reset => (String::new(), Then::Reset),
            Manner::HalfABody => (answer(status, &length(body.len()), half), Then::Closed),
            Manner::HalfOfTheChunks => (answer(status, chunked, &chunk(half)), Then::Closed),
            Manner::TooShort => (answer(status, &length(body.len() - 1), body), Then::Open),
            Manner::Empty => (answer(status, &length(0), ""), Then::Open),
            Manner::AndAnother => (whole() + &answer(200, &length(2), "{}"), Then::Open),
        }
    }
}

/// The state of a connection after an answer.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Open,
    Withheld,
    Closed,
    Reset,
}

fn length(bytes: usize) -> String {
    format!("Content-Length: {bytes}")
}

/// An answer with this header for its length.
fn answer(status: u16, length: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} Of A Kind\r\nContent-Type: application/x-amz-json-1.0\r\n{length}\r\n\r\n{body}")
}

#[derive(Clone, Debug)]
pub struct Came {
    pub connection: usize,
    pub manner: Manner,
}

/// The server.
#[derive(Clone)]
pub struct Unruly {
    pub engine: Engine,
    pub address: String,
    came: Arc<Mutex<Vec<Came>>>,
}

type Choose = Arc<dyn Fn(&str) -> Manner + Send + Sync>;

impl Unruly {
    /// Answers each request in the manner chosen for its operation.
    pub async fn start(engine: &Engine, manner: impl Fn(&str) -> Manner + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let server = Unruly { engine: engine.clone(), address, came: Arc::default() };
        let (serving, manner): (_, Choose) = (server.clone(), Arc::new(manner));
        tokio::spawn(async move {
            for connection in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                tokio::spawn(serving.clone().serve(connection, stream, manner.clone()));
            }
        });
        server
    }

    /// The requests so far.
    pub fn came(&self) -> Vec<Came> {
        self.came.lock().expect("no panic").clone()
    }

    async fn serve(self, connection: usize, mut stream: TcpStream, manner: Choose) {
        let mut withheld = String::new();
        let mut bytes = Vec::new();
        while let Some((operation, body)) = next_request(&mut stream, &mut bytes).await {
            let manner = manner(&operation);
            let (status, answer) = self.engine.answer(&operation, &body);
            self.came.lock().expect("no panic").push(Came { connection, manner });
            let (sent, then) = manner.sent(status, &answer);
            withheld += &sent;
            if then == Then::Withheld {
                continue;
            }
            // The client may be gone.
            let _ = stream.write_all(std::mem::take(&mut withheld).as_bytes()).await;
            match then {
                Then::Reset => return stream.set_zero_linger().unwrap_or_default(),
                Then::Closed => return,
                Then::Open | Then::Withheld => {}
            }
        }
    }
}

/// The operation and the body of the next request on a connection. `None` at its end.
async fn next_request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let header = |name: &str| {
                let mut lines = head.lines().filter_map(|line| line.split_once(": "));
                lines.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
            };
            let length: usize = header("content-length")?.parse().ok()?;
            if bytes.len() >= end + 4 + length {
                let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let target = text.split("DynamoDB_20120810.").nth(1)?.lines().next()?.to_owned();
                let body = bytes[end + 4..end + 4 + length].to_vec();
                bytes.drain(..end + 4 + length);
                return Some((target, body));
            }
        }
        if stream.read_buf(bytes).await.ok()? == 0 {
            return None;
        }
    }
}
