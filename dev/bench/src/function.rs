//! The size, start and memory of a function as a process.

use crate::process::{Function, event, runtime, start_engine};
use crate::table::{Outcome, figure, median, millis, number, table as markdown};
use crowds::table::{NAME, RECORDS};
use serde_json::json;
use std::path::{Path, PathBuf};

/// How often each program is started.
const STARTS: usize = 41;
/// The invocations over which the peak of the memory is taken.
const INVOCATIONS: usize = 200;

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
    let programs = programs.ok_or("no release build of device-state and baseline was given")?.both();
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
