//! The DynamoDB that the functions use, and how this tool and they reach it.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use aws_config::{BehaviorVersion, Region, timeout::TimeoutConfig};
use aws_sdk_dynamodb::{Client, config::Credentials};
use dynoxide::Database;
use tokio::net::TcpListener;

use crate::{args::Engine, failure::Failure};

/// Sent where there are no credentials: the engines want a signature but do not check it.
const PLACEHOLDER: &str = "local";

/// A DynamoDB that answers, or is about to.
pub struct DynamoDb {
    /// Its address.
    pub endpoint: String,
    /// Said of it at the end of the start, as in "DynamoDB in memory".
    pub kind: String,
    /// The file that holds its tables, where it is embedded and keeps them.
    pub file: Option<PathBuf>,
    region: String,
    own_credentials: bool,
}

impl DynamoDb {
    /// Starts the embedded engine on the current runtime, or takes the one that runs already.
    ///
    /// # Errors
    /// Where the port is taken or the data folder cannot be used.
    pub async fn start(engine: &Engine) -> Result<Self, Failure> {
        match engine {
            Engine::Existing { endpoint } => Ok(Self::existing(endpoint.clone())),
            Engine::Embedded { port, data } => Self::embedded(*port, data.as_deref()).await,
        }
    }

    fn existing(endpoint: String) -> Self {
        let named = |name: &&str| env::var_os(name).is_some();
        Self {
            endpoint,
            kind: "DynamoDB".to_owned(),
            file: None,
            region: region(),
            own_credentials: ["AWS_ACCESS_KEY_ID", "AWS_PROFILE"].iter().any(named),
        }
    }

    async fn embedded(port: u16, data: Option<&Path>) -> Result<Self, Failure> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(|error| {
            Failure::new(format!(
                "The embedded DynamoDB cannot have port {port} ({error}): choose another with --dynamodb-port, or use \
                 what answers there with --endpoint http://127.0.0.1:{port}."
            ))
        })?;
        let (database, kind, file) = match data {
            None => (in_memory()?, "DynamoDB in memory".to_owned(), None),
            Some(folder) => {
                let (database, file) = on_disk(folder)?;
                let kind = format!("DynamoDB in {}", folder.display());
                (database, kind, Some(file))
            }
        };
        tokio::spawn(dynoxide::server::serve_on(listener, database));
        Ok(Self { endpoint: format!("http://127.0.0.1:{port}"), kind, file, region: region(), own_credentials: false })
    }

    /// What the functions' SDK reads from the environment to come here.
    #[must_use]
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mut variables =
            vec![("AWS_ENDPOINT_URL_DYNAMODB", self.endpoint.clone()), ("AWS_REGION", self.region.clone())];
        if !self.own_credentials {
            variables.push(("AWS_ACCESS_KEY_ID", PLACEHOLDER.to_owned()));
            variables.push(("AWS_SECRET_ACCESS_KEY", PLACEHOLDER.to_owned()));
        }
        variables
    }

    /// Variables the functions must not inherit: with placeholders, whatever names the user's real account.
    #[must_use]
    pub fn hidden_environment(&self) -> &'static [&'static str] {
        if self.own_credentials { &[] } else { &["AWS_PROFILE", "AWS_SESSION_TOKEN"] }
    }

    /// A client for this tool's own calls. Unlike the functions' it leaves retries to the SDK.
    pub async fn client(&self) -> Client {
        let timeout = TimeoutConfig::builder().operation_timeout(Duration::from_secs(15)).build();
        let mut config = aws_config::defaults(BehaviorVersion::latest())
            .endpoint_url(&self.endpoint)
            .region(Region::new(self.region.clone()))
            .timeout_config(timeout);
        if !self.own_credentials {
            config = config.credentials_provider(Credentials::new(PLACEHOLDER, PLACEHOLDER, None, None, "placeholder"));
        }
        Client::new(&config.load().await)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(own_credentials: bool) -> DynamoDb {
        DynamoDb {
            endpoint: "http://127.0.0.1:8000".to_owned(),
            kind: "DynamoDB".to_owned(),
            file: None,
            region: "us-east-1".to_owned(),
            own_credentials,
        }
    }

    #[test]
    fn placeholders_replace_the_users_account_entirely() {
        let dynamodb = reached(false);
        let variables = dynamodb.environment();
        assert!(variables.contains(&("AWS_ACCESS_KEY_ID", PLACEHOLDER.to_owned())));
        assert!(dynamodb.hidden_environment().contains(&"AWS_PROFILE"));
    }

    #[test]
    fn the_users_own_credentials_are_left_alone() {
        let dynamodb = reached(true);
        let names: Vec<&str> = dynamodb.environment().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_REGION"]);
        assert!(dynamodb.hidden_environment().is_empty());
    }
}
