//! The start with all TLS roots and with one, and the part of it that makes the client.

use super::function::{Programs, STARTS};
use super::steps::Steps;
use crate::figure::{Figure, Measured, median};
use crate::process::Function as Process;
use crowds::table;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;

const END: &str = "-----END CERTIFICATE-----\n";

/// Where the TLS roots come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The bundle of the system.
    Bundle,
    /// A folder, which has each by itself too.
    Folder,
    /// A bundle of one.
    One,
}

/// The medians with roots from one source, in milliseconds.
#[derive(Clone, Debug)]
pub struct Row {
    /// The source.
    pub source: Source,
    /// The start of the function.
    pub start: Figure,
    /// The part of it that makes the client.
    pub client: Figure,
}

/// The medians with roots from each source.
#[derive(Clone, Debug)]
pub struct Roots {
    /// One for each source.
    pub rows: Vec<Row>,
}

/// Measures the start with each source.
///
/// # Errors
/// There are no programs, no bundle of certificates, or the function does not start.
pub fn measure(programs: &Measured<Programs>, steps: &Steps<'_>) -> Measured<Roots> {
    let device_state = &programs.as_ref().map_err(Clone::clone)?.device_state;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(measured(device_state, steps)).map_err(|error| error.to_string())
}

async fn measured(device_state: &Path, steps: &Steps<'_>) -> Result<Roots, Box<dyn Error>> {
    let bundle = openssl_probe::probe().cert_file.ok_or("there is no bundle of certificates")?;
    let one = OneRoot::of(&bundle)?;
    let one_root = one.0.to_str().ok_or("the path of the one root is not UTF-8")?;
    let folder = bundle.parent().and_then(Path::to_str).ok_or("the path of the bundle is not UTF-8")?;
    let sources = [
        (Source::Bundle, None),
        (Source::Folder, Some(("SSL_CERT_DIR", folder))),
        (Source::One, Some(("SSL_CERT_FILE", one_root))),
    ];
    steps.expect(STARTS * sources.len());
    let mut times = sources.map(|_| [(); 2].map(|()| Vec::new()));
    for _ in 0..STARTS {
        for ((_, source), [starts, clients]) in sources.iter().zip(&mut times) {
            let mut environment = vec![("DEVICES_TABLE", table::NAME), ("IDEMPOTENCY_RECORDS_TABLE", table::RECORDS)];
            environment.extend(source);
            let function = Process::start(device_state, &environment).await?;
            starts.push(function.start);
            function.stop().await?;
            let mut client = Command::new(std::env::current_exe()?);
            client.arg("client").process_group(0).env_clear().envs(environment).env("AWS_REGION", "eu-west-1");
            let output = String::from_utf8(client.output().await?.stdout)?;
            clients.push(Duration::from_nanos(output.trim().parse()?));
            steps.done(1);
        }
    }
    let row = |((source, _), [starts, clients]): (&(Source, _), &[Vec<Duration>; 2])| {
        let [start, client] = [starts, clients].map(|times| Figure::millis(median(times), 2));
        Row { source: *source, start, client }
    };
    Ok(Roots { rows: sources.iter().zip(&times).map(row).collect() })
}

/// A bundle with the first certificate of another one. Its file is removed at the end.
struct OneRoot(PathBuf);

impl OneRoot {
    fn of(bundle: &Path) -> Result<Self, Box<dyn Error>> {
        let text = std::fs::read_to_string(bundle)?;
        let end = text.find(END).ok_or("a bundle without certificates")? + END.len();
        let path = std::env::temp_dir().join(format!("one-root-{}.pem", std::process::id()));
        std::fs::write(&path, &text[..end])?;
        Ok(OneRoot(path))
    }
}

impl Drop for OneRoot {
    fn drop(&mut self) {
        let _gone_already = std::fs::remove_file(&self.0);
    }
}
