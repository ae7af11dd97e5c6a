//! The DynamoDB of the functions, with the settings of this tool and of the functions to reach it.

use std::{
    env,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    time::Duration,
};

use aws_config::{BehaviorVersion, Region, timeout::TimeoutConfig};
use aws_sdk_dynamodb::{
    Client, Config,
    config::{Credentials, retry::RetryConfig},
};
use dynoxide::Database;
use fencepost::lambda::https_client;
use nix::ifaddrs::getifaddrs;
use tokio::net::TcpListener;

use crate::{args::Engine, failure::Failure, limited};

/// The credentials. The engines want a signature, but do not check it.
const PLACEHOLDER: &str = "local";

/// The name of this machine in a container. `--add-host host.docker.internal:host-gateway` gives it to a container.
pub const CONTAINER_HOST: &str = "host.docker.internal";

/// The interface of Docker's default bridge on Linux.
const BRIDGE: &str = "docker0";

/// A DynamoDB that answers, or will answer soon.
pub struct DynamoDb {
    /// Its address.
    pub endpoint: String,
    /// Its address in a container, if it answers there.
    pub endpoint_in_containers: Option<String>,
    /// Its description at the end of the start, such as "DynamoDB in memory".
    pub kind: String,
    /// The file with its tables, if it is embedded and keeps them.
    pub file: Option<PathBuf>,
    region: String,
}

/// Variables that the functions must not inherit, because they name other credentials than [`DynamoDb::environment`].
pub const HIDDEN: [&str; 2] = ["AWS_PROFILE", "AWS_SESSION_TOKEN"];

impl DynamoDb {
    /// Starts the embedded engine on the current runtime, or uses an existing DynamoDB.
    ///
    /// # Errors
    /// The port is taken, or the data folder cannot be used.
    pub async fn start(engine: &Engine) -> Result<Self, Failure> {
        match &engine.endpoint {
            Some(endpoint) => Ok(Self {
                endpoint: endpoint.clone(),
                endpoint_in_containers: None,
                kind: "DynamoDB".to_owned(),
                file: None,
                region: region(),
            }),
            None => Self::embedded(engine).await,
        }
    }

    async fn embedded(engine: &Engine) -> Result<Self, Failure> {
        let &Engine { port, containers, item_write_units, lose_answers, .. } = engine;
        let listen = async |address: IpAddr| {
            TcpListener::bind((address, port)).await.map_err(|error| {
                Failure::new(format!(
                    "The embedded DynamoDB cannot have port {port} of {address} ({error}): choose another with \
                     --dynamodb-port, or use what answers there with --endpoint http://{address}:{port}."
                ))
            })
        };
        let listener = listen(Ipv4Addr::LOCALHOST.into()).await?;
        let bridge = match if containers { bridge()? } else { None } {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let listeners = bridge.into_iter().chain([listener]);
        let (kind, file) = if item_write_units.is_some() || lose_answers > 0 {
            let limited = limited::dynamodb(item_write_units, lose_answers);
            for listener in listeners {
                let limited = limited.clone();
                tokio::spawn(async move { axum::serve(listener, limited).await });
            }
            let throttles =
                item_write_units.map(|units| format!("throttles an item beyond {units} write units a second"));
            let loses = (lose_answers > 0).then(|| format!("loses the answers to {lose_answers} % of the writes"));
            let does: Vec<_> = throttles.into_iter().chain(loses).collect();
            (format!("DynamoDB in memory, which {},", does.join(" and ")), None)
        } else {
            let (database, kind, file) = match &engine.data {
                None => (in_memory()?, "DynamoDB in memory".to_owned(), None),
                Some(folder) => {
                    let (database, file) = on_disk(folder)?;
                    (database, format!("DynamoDB in {}", folder.display()), Some(file))
                }
            };
            for listener in listeners {
                tokio::spawn(dynoxide::server::serve_on(listener, database.clone()));
            }
            (kind, file)
        };
        let endpoint = format!("http://127.0.0.1:{port}");
        let endpoint_in_containers = containers.then(|| format!("http://{CONTAINER_HOST}:{port}"));
        Ok(Self { endpoint, endpoint_in_containers, kind, file, region: region() })
    }

    /// The environment variables with which the SDK of the functions finds this DynamoDB.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, &str); 4] {
        [
            ("AWS_ENDPOINT_URL_DYNAMODB", &self.endpoint),
            ("AWS_REGION", &self.region),
            ("AWS_ACCESS_KEY_ID", PLACEHOLDER),
            ("AWS_SECRET_ACCESS_KEY", PLACEHOLDER),
        ]
    }

    /// A client as the functions have it. It does not send again by itself, because the crate must see every lost answer.
    #[must_use]
    pub fn client_of_functions(&self) -> Client {
        let config = Config::builder()
            .behavior_version_latest()
            .http_client(https_client())
            .endpoint_url(&self.endpoint)
            .region(Region::new(self.region.clone()))
            .retry_config(RetryConfig::disabled())
            .credentials_provider(placeholders());
        Client::from_conf(config.build())
    }

    /// A client for the calls of this tool. The SDK retries for it, unlike for the clients of the functions.
    pub async fn client(&self) -> Client {
        let timeout = TimeoutConfig::builder().operation_timeout(Duration::from_secs(15)).build();
        let config = aws_config::defaults(BehaviorVersion::latest())
            .http_client(https_client())
            .endpoint_url(&self.endpoint)
            .region(Region::new(self.region.clone()))
            .timeout_config(timeout)
            .credentials_provider(placeholders());
        Client::new(&config.load().await)
    }
}

fn placeholders() -> Credentials {
    Credentials::new(PLACEHOLDER, PLACEHOLDER, None, None, "placeholder")
}

fn region() -> String {
    env::var("AWS_REGION").unwrap_or_else(|_| "us-east-1".to_owned())
}

fn in_memory() -> Result<Database, Failure> {
    Database::memory().map_err(|error| {
        Failure::new(format!("The embedded DynamoDB does not start ({error}): use another one with --endpoint URL."))
    })
}

fn on_disk(folder: &Path) -> Result<(Database, PathBuf), Failure> {
    let unusable = |error: &dyn std::fmt::Display| {
        Failure::new(format!(
            "{} cannot hold the tables ({error}): choose a folder that you can write to with --data.",
            folder.display()
        ))
    };
    std::fs::create_dir_all(folder).map_err(|error| unusable(&error))?;
    let file = folder.join("dynamodb.sqlite");
    let path = file.to_str().ok_or_else(|| unusable(&"its path is not UTF-8"))?;
    let database = Database::new(path).map_err(|error| unusable(&error))?;
    Ok((database, file))
}

/// Finds the address of Docker's bridge. Containers reach the servers there. Returns `None` where Docker runs in a
/// virtual machine and takes containers to 127.0.0.1, as on macOS.
///
/// # Errors
/// This machine has no such interface.
fn bridge() -> Result<Option<IpAddr>, Failure> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let named = getifaddrs().into_iter().flatten().filter(|interface| interface.interface_name == BRIDGE);
    let mut addresses = named.filter_map(|interface| Some(interface.address?.as_sockaddr_in()?.ip()));
    match addresses.next() {
        Some(address) => Ok(Some(address.into())),
        None => Err(Failure::new(format!(
            "Containers cannot be answered, because there is no interface {BRIDGE}: start Docker Engine (neither \
             Docker Desktop nor a rootless Docker has one on Linux), or leave --containers out."
        ))),
    }
}
