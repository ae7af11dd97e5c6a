//! The size, start and memory of a function as a process, and the time of an update over HTTP.

use super::engine;
use super::steps::Steps;
use crate::figure::{Figure, Measured, median, millis, number};
use crate::latency;
use crate::process::{Function as Process, event};
use crowds::table;
use serde_json::json;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often each program is started.
pub const STARTS: usize = 41;
/// The invocations over which the peak of the memory is taken.
pub const INVOCATIONS: usize = 200;
/// The updates of which the median is taken.
pub const ROUNDS: usize = 3000;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The two measured programs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The bootstrap of `device-state`.
    pub device_state: PathBuf,
    /// The bootstrap of `baseline`.
    pub baseline: PathBuf,
}

/// A measurement of ours, against another.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Ours.
    pub ours: Figure,
    /// What ours is measured against.
    pub against: Figure,
    /// The quotient.
    pub ratio: Figure,
}

/// The times of all starts in milliseconds, the shortest first.
#[derive(Clone, Debug)]
pub struct Starts {
    /// The medians.
    pub medians: Pair,
    /// The starts of `device-state`.
    pub ours: Vec<Figure>,
    /// The starts of `baseline`.
    pub against: Vec<Figure>,
}

/// The cost of a function. Each part of it may be missing by itself.
#[derive(Clone, Debug)]
pub struct Function {
    /// The sizes of the bootstraps in MB.
    pub size: Measured<Pair>,
    /// The starts.
    pub starts: Measured<Starts>,
    /// The peaks of the memory in MB.
    pub memory: Measured<Pair>,
    /// The medians of an update in milliseconds, against the bare SDK.
    pub update: Measured<Pair>,
}

/// Measures the two programs, and an update. Without programs, only the update.
///
/// # Errors
/// This machine cannot run anything asynchronous.
pub fn measure(programs: &Measured<Programs>, steps: &Steps<'_>) -> Measured<Function> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    // A start takes about 10 ms, a peak of the memory a second, and the updates 10 s.
    steps.expect(STARTS * 2 + 6 * 50 + 500);
    let of = |programs: &Programs| {
        let starts = runtime.block_on(starts(programs, steps)).map_err(|error| error.to_string());
        let memory = runtime.block_on(memory(programs, steps)).map_err(|error| error.to_string());
        Function { size: size(programs), starts, memory, update: Err(String::new()) }
    };
    let missing = |reason: String| Function {
        size: Err(reason.clone()),
        starts: Err(reason.clone()),
        memory: Err(reason),
        update: Err(String::new()),
    };
    let function = programs.as_ref().map_or_else(|reason| missing(reason.clone()), of);
    let update = runtime.block_on(update()).map_err(|error| error.to_string());
    steps.done(500);
    Ok(Function { update, ..function })
}

fn pair(ours: f64, against: f64, decimals: usize) -> Pair {
    let [ratio, ours, against] = [(ours / against, 2), (ours, decimals), (against, decimals)]
        .map(|(value, decimals)| Figure::new(value, decimals));
    Pair { ours, against, ratio }
}

fn size(programs: &Programs) -> Measured<Pair> {
    let megabytes = |path: &Path| match std::fs::metadata(path) {
        Ok(file) => Ok(number(file.len()) / 1e6),
        Err(error) => Err(format!("{}: {error}", path.display())),
    };
    Ok(pair(megabytes(&programs.device_state)?, megabytes(&programs.baseline)?, 2))
}

async fn starts(programs: &Programs, steps: &Steps<'_>) -> Outcome<Starts> {
    let (_engine, endpoint) = engine::start().await?;
    let environment = environment(&endpoint);
    let (mut ours, mut against) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        for (program, starts) in [(&programs.device_state, &mut ours), (&programs.baseline, &mut against)] {
            let function = Process::start(program, &environment).await?;
            starts.push(function.start);
            function.stop().await?;
            steps.done(1);
        }
    }
    let medians = pair(millis(median(&ours)), millis(median(&against)), 2);
    let sorted = |mut times: Vec<Duration>| {
        times.sort();
        times.into_iter().map(|time| Figure::millis(time, 2)).collect()
    };
    Ok(Starts { medians, ours: sorted(ours), against: sorted(against) })
}

async fn memory(programs: &Programs, steps: &Steps<'_>) -> Outcome<Pair> {
    let (_engine, endpoint) = engine::start().await?;
    let environment = environment(&endpoint);
    let ours = peak(&programs.device_state, &environment, steps).await?;
    Ok(pair(ours, peak(&programs.baseline, &environment, steps).await?, 1))
}

async fn update() -> Outcome<Pair> {
    let (_engine, endpoint) = engine::start().await?;
    let latency = latency::measure(&endpoint, ROUNDS).await;
    Ok(pair(millis(latency.ours), millis(latency.bare), 3))
}

fn environment(endpoint: &str) -> [(&str, &str); 3] {
    [
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoint),
        ("DEVICES_TABLE", table::NAME),
        ("IDEMPOTENCY_RECORDS_TABLE", table::RECORDS),
    ]
}

/// The highest peak memory of three processes, in MB, after a creation and adjustments.
async fn peak(program: &Path, environment: &[(&str, &str)], steps: &Steps<'_>) -> Outcome<f64> {
    let mut most = 0;
    for _ in 0..3 {
        let mut function = Process::start(program, environment).await?;
        function.invoke(event("PUT", "", &json!({"state": {"brightness": 0}}))).await?;
        for _ in 1..INVOCATIONS {
            let adjust = event("POST", "/adjustments", &json!({"attribute": "brightness", "by": 1}));
            let answer = function.invoke(adjust).await?;
            if !answer.contains("brightness") {
                return Err(answer.into());
            }
        }
        most = most.max(function.peak_memory()?);
        function.stop().await?;
        steps.done(50);
    }
    Ok(number(most) * 1024.0 / 1e6)
}
