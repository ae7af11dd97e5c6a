//! The size, start and memory of a function as a process, with the part of the start for TLS roots.
#![expect(clippy::disallowed_methods, reason = "measures on the wall clock")]

use crate::process::{Function, event, runtime, start_engine};
use crate::table::{Outcome, figure, median, millis, number, table as markdown};
use crowds::table::{NAME, RECORDS};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::process::Command;

/// How often each program is started.
const STARTS: usize = 41;
/// The invocations over which the peak of the memory is taken.
const INVOCATIONS: usize = 200;
const NO_PROGRAMS: &str = "no release build of device-state and baseline was given";

/// The bootstraps of `device-state` and of `baseline`, which has no SDK.
pub struct Programs {
    pub device_state: PathBuf,
    pub baseline: PathBuf,
}

impl Programs {
    fn both(&self) -> [&Path; 2] {
        [&self.device_state, &self.baseline]
    }
}

/// The size, the start and the memory of `device-state`, against those of `baseline`.
pub fn table(programs: Option<&Programs>) -> Outcome<String> {
    let programs = programs.ok_or(NO_PROGRAMS)?.both();
    let runtime = runtime()?;
    let mut sizes = [0.0; 2];
    for (program, size) in programs.into_iter().zip(&mut sizes) {
        let file = std::fs::metadata(program).map_err(|error| format!("{}: {error}", program.display()))?;
        *size = number(file.len()) / 1e6;
    }
    let starts = runtime.block_on(starts(programs))?;
    let peaks = runtime.block_on(peaks(programs))?;
    let row = |what: String, [ours, against]: [f64; 2], decimals, target: &str| {
        [what, figure(ours, decimals), figure(against, decimals), figure(ours / against, 2), target.to_owned()]
    };
    let rows = [
        row("bootstrap, MB".to_owned(), sizes, 2, "<= 5.0 MB"),
        row(format!("start, spawn to first `next`, median of {STARTS}, ms"), starts, 2, "<= 1.8 x"),
        row(format!("peak memory over {INVOCATIONS} invocations, MB"), peaks, 1, "<= 10 MB"),
    ];
    Ok(markdown(["what", "Fencepost", "without the SDK", "ratio", "target"], rows))
}

/// The medians in milliseconds, in turns.
async fn starts(programs: [&Path; 2]) -> Outcome<[f64; 2]> {
    let (_engine, endpoint) = start_engine().await?;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..STARTS {
        for (program, times) in programs.into_iter().zip(&mut times) {
            let function = Function::start(program, &environment(&endpoint)).await?;
            times.push(function.start);
            function.stop().await?;
        }
    }
    Ok(times.map(|mut times| millis(median(&mut times))))
}

/// The highest peak memory of three processes, in MB, after a creation and adjustments.
async fn peaks(programs: [&Path; 2]) -> Outcome<[f64; 2]> {
    let (_engine, endpoint) = start_engine().await?;
    let mut most = [0; 2];
    for (program, most) in programs.into_iter().zip(&mut most) {
        for _ in 0..3 {
            let mut function = Function::start(program, &environment(&endpoint)).await?;
            function.invoke(event("PUT", "", &json!({"state": {"brightness": 0}}))).await?;
            for _ in 1..INVOCATIONS {
                let adjust = event("POST", "/adjustments", &json!({"attribute": "brightness", "by": 1}));
                let answer = function.invoke(adjust).await?;
                if !answer.contains("brightness") {
                    return Err(answer.into());
                }
            }
            *most = function.peak_memory()?.max(*most);
            function.stop().await?;
        }
    }
    Ok(most.map(|kib| number(kib) * 1024.0 / 1e6))
}

fn environment(endpoint: &str) -> [(&str, &str); 3] {
    [("AWS_ENDPOINT_URL_DYNAMODB", endpoint), ("DEVICES_TABLE", NAME), ("IDEMPOTENCY_RECORDS_TABLE", RECORDS)]
}

/// The start with TLS roots from each source, with the part of it for the client.
pub fn roots(programs: Option<&Programs>) -> Outcome<String> {
    let device_state = &programs.ok_or(NO_PROGRAMS)?.device_state;
    let bundle = openssl_probe::probe().cert_file.ok_or("there is no bundle of certificates")?;
    let folder = bundle.parent().and_then(Path::to_str).ok_or("the path of the bundle is not UTF-8")?;
    let text = std::fs::read_to_string(&bundle)?;
    let (first, _) = text.split_once("-----END CERTIFICATE-----").ok_or("a bundle without certificates")?;
    let one_root = std::env::temp_dir().join(format!("one-root-{}.pem", std::process::id()));
    std::fs::write(&one_root, format!("{first}-----END CERTIFICATE-----\n"))?;
    let sources = [
        ("the system's bundle", None),
        ("a folder that has each by itself, too", Some(("SSL_CERT_DIR", folder))),
        ("one", Some(("SSL_CERT_FILE", one_root.to_str().ok_or("the path of the one root is not UTF-8")?))),
    ];
    let measured = runtime()?.block_on(starts_with(device_state, sources.map(|(_, source)| source)));
    std::fs::remove_file(&one_root)?;
    let rows = sources
        .iter()
        .zip(measured?)
        .map(|((name, _), [start, client])| [(*name).to_owned(), figure(start, 2), figure(client, 2)]);
    Ok(markdown(["TLS roots", "start, ms", "client, ms"], rows))
}

/// The medians of the start and of [`client`] with each variable, in milliseconds, in turns.
async fn starts_with(program: &Path, sources: [Option<(&str, &str)>; 3]) -> Outcome<[[f64; 2]; 3]> {
    let mut times = sources.map(|_| [Vec::new(), Vec::new()]);
    for _ in 0..STARTS {
        for (source, [starts, clients]) in sources.iter().zip(&mut times) {
            let mut environment = vec![("DEVICES_TABLE", NAME), ("IDEMPOTENCY_RECORDS_TABLE", RECORDS)];
            environment.extend(source);
            let function = Function::start(program, &environment).await?;
            starts.push(function.start);
            function.stop().await?;
            let mut client = Command::new(std::env::current_exe()?);
            client.arg("client").env_clear().envs(environment).env("AWS_REGION", "eu-west-1");
            let output = String::from_utf8(client.output().await?.stdout)?;
            clients.push(Duration::from_nanos(output.trim().parse()?));
        }
    }
    Ok(times.map(|times| times.map(|mut times| millis(median(&mut times)))))
}

/// The time to create the client in the same way as `fencepost::lambda::serve`, in a fresh process. It reads the TLS
/// roots.
pub fn client() -> Duration {
    let begun = Instant::now();
    let _client = fencepost::lambda::client_from_env();
    begun.elapsed()
}
