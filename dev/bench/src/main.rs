//! Prints the cost of Fencepost as ratios measured in one run. `cargo dev bench` builds everything and runs this.
//!
//! Usage: `bench DEVICE_STATE BASELINE`, with the paths of the two bootstraps. Only one part of the numbers:
//! `bench adds`, `bench units`, `bench orders`, `bench leases` or `bench connections`. (This program starts
//! `bench engine` and `bench client` as processes of its own.)
#![allow(clippy::print_stdout, reason = "this is a command-line tool: its table goes to the terminal")]

use bench::adds::{self, Callers};
use bench::connections::{self, Trouble};
use bench::crowd::{self, Strategy};
use bench::leases::{self, Cost};
use bench::orders::{self, Scene, Way};
use bench::process::{Function, event};
use bench::wire::Loss;
use bench::{latency, table};
use serde_json::json;
use std::error::Error;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

type Outcome<T> = Result<T, Box<dyn Error>>;

const STARTS: usize = 41;
const INVOCATIONS: usize = 200;
const ROUNDS: usize = 3000;
const SEEDS: u64 = 10;
/// The seeds for leases. Leases need more of them, because most of their time is random.
const LEASE_SEEDS: u64 = 200;
const HOP: Duration = Duration::from_millis(5);

/// The parts that need no other process. Each can be printed alone.
const PARTS: [(&str, fn()); 5] =
    [("adds", adds), ("units", units), ("orders", orders), ("leases", leases), ("connections", slow_connections)];

fn main() -> Outcome<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    if let [part] = arguments[..]
        && let Some((_, print)) = PARTS.iter().find(|(name, _)| *name == part)
    {
        print();
        return Ok(());
    }
    match arguments[..] {
        ["engine"] => runtime.block_on(serve_engine()),
        ["client"] => {
            println!("{}", bench::startup::client().as_nanos());
            Ok(())
        }
        [device_state, baseline] => {
            println!("| what | Fencepost | against | ratio | target |\n|---|---|---|---|---|");
            runtime.block_on(measure(Path::new(device_state), Path::new(baseline)))?;
            crowds();
            for (_, print) in PARTS {
                print();
            }
            runtime.block_on(startup(Path::new(device_state)))
        }
        _ => Err("bench DEVICE_STATE BASELINE".into()),
    }
}

/// Serves the engine in a process of its own, until it is killed. Prints its port as the first line.
async fn serve_engine() -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    dynoxide::server::serve_on(listener, table::engine()).await;
    Ok(())
}

async fn start_engine() -> Outcome<(Child, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut engine = command.arg("engine").stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let mut port = String::new();
    let stdout = engine.stdout.take().ok_or("no output")?;
    BufReader::new(stdout).read_line(&mut port).await?;
    Ok((engine, format!("http://127.0.0.1:{}", port.trim())))
}

async fn measure(device_state: &Path, baseline: &Path) -> Outcome<()> {
    let (_engine, endpoint) = start_engine().await?;
    let size = |path: &Path| Ok::<_, Box<dyn Error>>(number(std::fs::metadata(path)?.len()));
    row("bootstrap, MB", size(device_state)? / 1e6, size(baseline)? / 1e6, 2, "<= 5.6 MB");

    let environment = [
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.as_str()),
        ("DEVICES_TABLE", table::NAME),
        ("IDEMPOTENCY_RECORDS_TABLE", table::RECORDS),
    ];
    let (mut our_starts, mut baseline_starts) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        for (program, starts) in [(device_state, &mut our_starts), (baseline, &mut baseline_starts)] {
            let function = Function::start(program, &environment).await?;
            starts.push(function.start);
            function.stop().await?;
        }
    }
    row("start, ms", millis(median(&mut our_starts)), millis(median(&mut baseline_starts)), 2, "<= 3.3 x");
    let (ours, baselines) = (peak(device_state, &environment).await?, peak(baseline, &environment).await?);
    row("peak memory over 200 invocations, MB", ours, baselines, 1, "<= 10 MB");

    let (_engine, endpoint) = start_engine().await?;
    let latency = latency::measure(&endpoint, ROUNDS).await;
    row("update against GetItem + UpdateItem, ms", millis(latency.ours), millis(latency.bare), 3, "<= 1.1 x");
    Ok(())
}

/// The highest peak memory of three processes, in MB, after a creation and adjustments.
async fn peak(program: &Path, environment: &[(&str, &str)]) -> Outcome<f64> {
    let mut most = 0;
    for _ in 0..3 {
        let mut function = Function::start(program, environment).await?;
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
    }
    Ok(number(most) * 1024.0 / 1e6)
}

/// Measures the same crowds with each strategy. The numbers are exact, because time is virtual.
fn crowds() {
    println!(
        "\n| writers at once on one item, 5 ms hops (virtual time, {SEEDS} seeds) | requests per success | x Fencepost | mean time of a success, ms | slowest, ms | gave up |\n|---|---|---|---|---|---|"
    );
    for writers in [1, 2, 10, 100] {
        let mut ours = f64::NAN;
        for (name, strategy) in [
            ("Fencepost", Strategy::Fencepost),
            ("naive: read again, 2^n x 100 ms, 5 retries", Strategy::Naive),
            ("full jitter: read again, 25 ms to 1 s", Strategy::FullJitter),
        ] {
            let games: Vec<_> = (0..SEEDS).map(|seed| crowd::play(strategy, writers, HOP, seed)).collect();
            let successes: usize = games.iter().map(|game| game.times.len()).sum();
            let requests: u64 = games.iter().map(|game| u64::from(game.requests)).sum();
            let time: Duration = games.iter().flat_map(|game| &game.times).sum();
            let gave_up: usize = games.iter().map(|game| game.gave_up).sum();
            let slowest = games.iter().map(crowd::Outcome::longest).max().unwrap_or_default();
            let per_success = number(requests) / number(successes as u64);
            if strategy == Strategy::Fencepost {
                ours = per_success;
            }
            println!(
                "| {writers}, {name} | {per_success:.2} | {:.2} | {:.0} | {:.0} | {gave_up} of {} |",
                per_success / ours,
                millis(time) / number(successes as u64),
                millis(slowest),
                successes + gave_up
            );
        }
    }
}

/// Measures the same crowds with adds and with versioned changes. The numbers are exact, because time is virtual.
fn adds() {
    const SEEDS: u64 = 3;
    println!(
        "\n| callers at once on one item, 5 ms hops (virtual time, {SEEDS} seeds) | requests each | mean time, ms | slowest, ms | gave up |\n|---|---|---|---|---|"
    );
    for callers in [1, 10, 100, 1000] {
        let adds = |stores| move |seed| adds::at_once(stores, callers, HOP, seed);
        let versioned = |seed| crowd::play(Strategy::Fencepost, callers, HOP, seed);
        let ways: [(&str, &dyn Fn(u64) -> crowd::Outcome); 3] = [
            ("add, one client", &adds(Callers::OneStore)),
            ("add, a client each", &adds(Callers::OwnStores)),
            ("versioned change, a client each", &versioned),
        ];
        for (name, play) in ways {
            let games: Vec<_> = (0..SEEDS).map(play).collect();
            add_row(&format!("{callers}, {name}"), &games);
        }
    }
    let minute = Duration::from_mins(1);
    add_row("200 a second for a minute, add, one client", &[adds::steady(200, minute, HOP, 1)]);
}

fn add_row(what: &str, games: &[crowd::Outcome]) {
    let successes: usize = games.iter().map(|game| game.times.len()).sum();
    let requests: u64 = games.iter().map(|game| u64::from(game.requests)).sum();
    let time: Duration = games.iter().flat_map(|game| &game.times).sum();
    let slowest = games.iter().map(crowd::Outcome::longest).max().unwrap_or_default();
    let gave_up: usize = games.iter().map(|game| game.gave_up).sum();
    println!(
        "| {what} | {:.2} | {:.0} | {:.0} | {gave_up} of {} |",
        number(requests) / number(successes as u64),
        millis(time) / number(successes as u64),
        millis(slowest),
        successes + gave_up
    );
}

/// Measures the write units of each add. `DynamoDB` charges one for each started KB of the item after the write.
fn units() {
    println!("\n| write units per add (virtual time) | R = 16 | R = 32 | R = 64 |\n|---|---|---|---|");
    let (hot, quiet) =
        (("200 adds a second", 200.0, Duration::from_secs(5)), ("1 add a second", 1.0, Duration::from_mins(2)));
    for bytes in [300, 900] {
        for (pace, per_second, time) in [hot, quiet] {
            let [least, middle, most] = [
                adds::units::<16>(bytes, per_second, time, HOP),
                adds::units::<32>(bytes, per_second, time, HOP),
                adds::units::<64>(bytes, per_second, time, HOP),
            ];
            println!("| item of {bytes} B, {pace} | {least:.2} | {middle:.2} | {most:.2} |");
        }
    }
}

/// Measures the same orders both ways: without trouble, with `TransactionConflict` as on AWS, and with losses too. The
/// numbers are exact, because time is virtual.
fn orders() {
    println!(
        "\n| {} clients, {} orders each, 5 ms hops (virtual time) | acknowledged | held | stock taken | unknown, asked again | given up | requests per order | orders per second | x usual |\n|---|---|---|---|---|---|---|---|---|",
        orders::CLIENTS,
        orders::WANTED
    );
    for (trouble, conflicts, losses) in [
        ("", false, false),
        (", transaction conflicts", true, false),
        (", transaction conflicts, 2 % of answers lost", true, true),
    ] {
        for products in [1, 1000] {
            let mut usual = f64::NAN;
            for way in [Way::Usual, Way::Fencepost] {
                let game = orders::play(way, Scene { products, losses, conflicts }, HOP, 1);
                let per_second = number(game.acknowledged) / game.time.as_secs_f64();
                if way == Way::Usual {
                    usual = per_second;
                }
                let name = if way == Way::Usual { "usual way" } else { "Fencepost" };
                let plural = if products == 1 { "" } else { "s" };
                order_row(&format!("{name}, {products} product{plural}{trouble}"), &game, per_second, usual);
            }
        }
    }
}

fn order_row(what: &str, game: &orders::Outcome, per_second: f64, usual: f64) {
    println!(
        "| {what} | {} | {} | {} | {} | {} | {:.2} | {per_second:.1} | {:.2} |",
        game.acknowledged,
        game.held,
        game.taken,
        game.unknown,
        game.gave_up,
        number(u64::from(game.requests)) / number(game.acknowledged),
        per_second / usual,
    );
}

/// Measures the cost of leases, and how long they take to change hands. The numbers are exact, because time is virtual.
fn leases() {
    const CYCLES: u32 = 100;
    println!(
        "\n| leases, 5 ms hops (virtual time, {LEASE_SEEDS} seeds) | requests, mean | worst | ms, mean | worst |\n|---|---|---|---|---|"
    );
    let Cost { requests, time } = leases::cycles(CYCLES, HOP);
    let each = Cost { requests: requests / CYCLES, time: time / CYCLES };
    lease_row("acquire and release", &[each]);
    let costs = |play: &dyn Fn(u64) -> Cost| (0..LEASE_SEEDS).map(play).collect::<Vec<_>>();
    lease_row("acquire, the connection breaks", &costs(&|seed| leases::lost_acquire(Loss::Broken, HOP, seed)));
    lease_row("acquire, no answer comes", &costs(&|seed| leases::lost_acquire(Loss::Silent, HOP, seed)));
    let what = format!(
        "{} waiters, {} ms of work each, leases of {} ms",
        leases::WAITERS,
        leases::WORK.as_millis(),
        leases::WAITED_FOR.as_millis()
    );
    lease_row(&what, &costs(&|seed| leases::waiters(HOP, seed).cost));
    let successions: Vec<_> = (0..LEASE_SEEDS).map(|seed| leases::succession(HOP, seed)).collect();
    let times = |of: fn(&leases::Succession) -> Duration| {
        successions.iter().map(|next| Cost { requests: 0, time: of(next) }).collect::<Vec<_>>()
    };
    lease_row("a holder's death to the next holder, leases of 10 s", &times(|next| next.after_death));
    lease_row("the part after its end and 1 s for the clocks", &times(|next| next.after_free));
}

fn lease_row(what: &str, costs: &[Cost]) {
    let count = number(costs.len() as u64);
    let requests: u64 = costs.iter().map(|cost| u64::from(cost.requests)).sum();
    let most = costs.iter().map(|cost| cost.requests).max().unwrap_or_default();
    let time: Duration = costs.iter().map(|cost| cost.time).sum();
    let longest = costs.iter().map(|cost| cost.time).max().unwrap_or_default();
    let (requests, most) = match most {
        0 => (String::new(), String::new()),
        _ => (format!("{:.1}", number(requests) / count), most.to_string()),
    };
    println!("| {what} | {requests} | {most} | {:.0} | {:.0} |", millis(time) / count, millis(longest));
}

/// Measures an update over slow connections both ways. The numbers are exact, because time is virtual.
fn slow_connections() {
    println!(
        "\n| update, 5 ms hops, handshake {} ms (virtual time, {SEEDS} seeds) | way | ms, mean | worst | requests, mean | connections opened | lost answers |\n|---|---|---|---|---|---|---|",
        connections::HANDSHAKE.as_millis()
    );
    let minutes = |minutes| Trouble::Freeze(Duration::from_mins(minutes));
    for (what, trouble) in [
        ("no trouble", Trouble::None),
        ("new client, the answer to the read 200 ms late", Trouble::ColdAndLateRead),
        ("connected, the answer to the write 200 ms late", Trouble::LateWrite),
        ("connected, the answer to the write lost", Trouble::LostWrite),
        ("four dead connections after a freeze of 30 s", Trouble::Freeze(Duration::from_secs(30))),
        ("four dead connections after a freeze of 5 min", minutes(5)),
    ] {
        for (name, way) in [("Fencepost", connections::Way::Fencepost), ("hang up", connections::Way::HangUp)] {
            let costs: Vec<_> = (0..SEEDS).map(|seed| connections::update(way, trouble, HOP, seed)).collect();
            let mean = |of: fn(&connections::Cost) -> u32| {
                number(costs.iter().map(|cost| u64::from(of(cost))).sum()) / number(SEEDS)
            };
            let time: Duration = costs.iter().map(|cost| cost.time).sum();
            let longest = costs.iter().map(|cost| cost.time).max().unwrap_or_default();
            println!(
                "| {what} | {name} | {:.0} | {:.0} | {:.1} | {:.1} | {:.1} |",
                millis(time) / number(SEEDS),
                millis(longest),
                mean(|cost| cost.counts.requests),
                mean(|cost| cost.counts.opened),
                mean(|cost| cost.lost),
            );
        }
    }
}

const END: &str = "-----END CERTIFICATE-----\n";

/// Measures the start with all TLS roots and with one, and the part of it that makes the client.
async fn startup(device_state: &Path) -> Outcome<()> {
    let bundle = openssl_probe::probe().cert_file.ok_or("there is no bundle of certificates")?;
    let text = std::fs::read_to_string(&bundle)?;
    let end = text.find(END).ok_or("a bundle without certificates")? + END.len();
    let one = std::env::temp_dir().join(format!("one-root-{}.pem", std::process::id()));
    std::fs::write(&one, &text[..end])?;
    let one_root = one.to_str().ok_or("a path in UTF-8")?;
    let folder = bundle.parent().and_then(Path::to_str).ok_or("a path in UTF-8")?;
    println!("\n| TLS roots | start, ms | client, ms |\n|---|---|---|");
    let sources = [
        ("the system's bundle", None),
        ("a folder that has each by itself, too", Some(("SSL_CERT_DIR", folder))),
        ("one", Some(("SSL_CERT_FILE", one_root))),
    ];
    let mut times = sources.map(|_| [(); 2].map(|()| Vec::new()));
    for _ in 0..STARTS {
        for ((_, source), [starts, clients]) in sources.iter().zip(&mut times) {
            let mut environment = vec![("DEVICES_TABLE", table::NAME), ("IDEMPOTENCY_RECORDS_TABLE", table::RECORDS)];
            environment.extend(source);
            let function = Function::start(device_state, &environment).await?;
            starts.push(function.start);
            function.stop().await?;
            let mut client = Command::new(std::env::current_exe()?);
            client.arg("client").env_clear().envs(environment).env("AWS_REGION", "eu-west-1");
            let output = String::from_utf8(client.output().await?.stdout)?;
            clients.push(Duration::from_nanos(output.trim().parse()?));
        }
    }
    std::fs::remove_file(&one)?;
    for ((name, _), [starts, clients]) in sources.iter().zip(&mut times) {
        let [start, client] = [starts, clients].map(|times| millis(median(times)));
        println!("| {name} | {start:.2} | {client:.2} |");
    }
    Ok(())
}

fn row(what: &str, ours: f64, against: f64, digits: usize, target: &str) {
    println!("| {what} | {ours:.digits$} | {against:.digits$} | {:.2} | {target} |", ours / against);
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn number(number: u64) -> f64 {
    number as f64
}
