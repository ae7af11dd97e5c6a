//! An HTTP client with lost answers, on a real connection.

use aws_sdk_dynamodb::config::{HttpClient, SharedHttpClient};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use fastrand::Rng;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Loses so many of 100 answers. The requests are carried out.
pub struct Losses {
    of_100: u8,
    chance: Mutex<Rng>,
    lost: AtomicU64,
}

/// The way in which an answer is lost.
#[derive(Clone, Copy)]
enum Loss {
    Broken,
    Error500,
    Silence,
}

impl fmt::Debug for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of 100", self.of_100)
    }
}

impl Losses {
    pub fn new(of_100: u8, chance: Rng) -> Arc<Self> {
        Arc::new(Losses { of_100, chance: Mutex::new(chance), lost: AtomicU64::default() })
    }

    /// How many answers were lost.
    pub fn so_far(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    fn draw(&self) -> Option<Loss> {
        let mut chance = self.chance.lock().expect("no panic while drawing");
        if chance.u8(0..100) >= self.of_100 {
            return None;
        }
        self.lost.fetch_add(1, Relaxed);
        chance.choice([Loss::Broken, Loss::Error500, Loss::Silence])
    }
}

/// The same client, on which answers get lost.
pub fn losing(client: SharedHttpClient, losses: &Arc<Losses>) -> SharedHttpClient {
    let losses = Arc::clone(losses);
    http_client_fn(move |settings, components| {
        let connector = client.http_connector(settings, components);
        SharedHttpConnector::new(Losing { connector, losses: Arc::clone(&losses) })
    })
}

#[derive(Debug)]
struct Losing {
    connector: SharedHttpConnector,
    losses: Arc<Losses>,
}

impl HttpConnector for Losing {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (answer, loss) = (self.connector.call(request), self.losses.draw());
        HttpConnectorFuture::new(async move {
            let answer = answer.await?;
            match loss {
                None => Ok(answer),
                Some(Loss::Broken) => Err(ConnectorError::io("the connection broke".into())),
                Some(Loss::Error500) => Ok(HttpResponse::new(
                    500.try_into().expect("a status"),
                    SdkBody::from(r#"{"__type":"InternalServerError"}"#),
                )),
                Some(Loss::Silence) => std::future::pending().await,
            }
        })
    }
}
