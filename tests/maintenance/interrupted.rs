//! The tool as a process that is killed and started again, and on a large table.

use super::{KEY, TABLE, put};
use crate::harness::engine::number;
use crate::harness::restore::rows;
use crate::harness::server::{Server, patiently};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// The address space of a process that goes over a large table, in KB. It starts in half of that.
const ADDRESS_SPACE: u32 = 50_000;
const MANY: usize = 2_500;

fn file(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("operator-{name}-{}", std::process::id()));
    let _from_an_earlier_run = std::fs::remove_file(&file);
    file
}

fn with_environment(mut command: Command, server: &Server) -> Command {
    command
        .env_clear()
        .envs([
            ("AWS_ENDPOINT_URL_DYNAMODB", server.endpoint().as_str()),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn operator(server: &Server, line: &str, state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_operator"));
    command.args(line.split(' ')).arg("--state").arg(state);
    with_environment(command, server)
}

/// Starts it, and waits until it has done the first page.
async fn first_page(mut command: Command) -> (Child, Lines<BufReader<ChildStderr>>) {
    let mut process = command.spawn().expect("the binary is built");
    let mut progress = BufReader::new(process.stderr.take().expect("piped")).lines();
    let line = patiently("a page", progress.next_line()).await.expect("text").expect("a line");
    assert!(line.starts_with("  1 rows"), "{line}");
    (process, progress)
}

/// Kills it at once, as the machine may. Gives its output until then.
async fn kill(mut process: Child) -> Vec<Value> {
    process.start_kill().expect("it runs");
    lines(&patiently("its end", process.wait_with_output()).await.expect("a child").stdout)
}

/// Lets it go to its end. Gives its output.
async fn to_the_end(mut command: Command) -> Vec<Value> {
    let output = patiently("a run", command.output()).await.expect("the binary is built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    lines(&output.stdout)
}

fn lines(text: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(text).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("a whole line of JSON")).collect()
}

fn keys(lines: &[Value]) -> Vec<String> {
    lines.iter().filter_map(|line| Some(line["key"][KEY]["S"].as_str()?.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_explanation_that_is_killed_goes_on_where_it_was() {
    let server = Server::start(&[(TABLE, KEY)]).await;
    (0..30).for_each(|number| put(&server.engine, &format!("a-{number}"), &json!({})));
    let state = file("explain");
    // One row in a second.
    let (process, _) = first_page(operator(&server, "explain --table Accounts --json --rate 1", &state)).await;
    let before = keys(&kill(process).await);
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&state).expect("a state")).expect("JSON");
    let done = kept["found"]["rows"].as_u64().expect("a count");
    assert!((1..30).contains(&done), "{kept}");

    let another = patiently("a refusal", operator(&server, "adopt --table Accounts", &state).output()).await;
    let another = another.expect("the binary is built");
    assert_eq!(another.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&another.stderr).contains("is not of this command on this table"));

    let after = to_the_end(operator(&server, "explain --table Accounts --json", &state)).await;
    assert_eq!(after.last().expect("a summary")["summary"]["found"]["rows"], 30);
    assert_eq!(keys(&after).len() as u64, 30 - done, "it does not begin at the start");
    assert_eq!(before.into_iter().chain(keys(&after)).collect::<BTreeSet<_>>().len(), 30);
    assert!(!state.exists(), "a run that has ended leaves no state");
}

/// Killed while writes are on their way. Some of them are applied after its death.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adoption_that_is_killed_goes_on_and_adopts_each_row_once() {
    let server = Server::start(&[(TABLE, KEY)]).await;
    (0..30).for_each(|number| put(&server.engine, &format!("a-{number}"), &json!({"_version": {"N": "3"}})));
    let state = file("adopt");
    let (process, _progress) =
        first_page(operator(&server, "adopt --table Accounts --json --write --rate 1", &state)).await;
    server.shut(TABLE);
    server.until("a write on its way", |traffic| traffic.waited > 0).await;
    kill(process).await;
    server.open();
    let versions = || rows(&server.engine, TABLE).iter().map(|row| number(row, "_version")).collect::<Vec<_>>();
    assert!(versions().contains(&3) && versions().contains(&4), "{:?}", versions());
    let after = to_the_end(operator(&server, "adopt --table Accounts --json --write", &state)).await;
    let found = &after.last().expect("a summary")["summary"]["found"];
    assert!(found["rows"] == 30 && [29, 30].contains(&found["written"].as_u64().expect("a count")), "{found}");
    assert_eq!(versions(), [4; 30]);
    assert!(rows(&server.engine, TABLE).iter().all(|row| row["_incarnation"]["B"].is_string()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_row_is_explained_by_its_key() {
    let server = Server::start(&[(TABLE, KEY)]).await;
    put(&server.engine, "a-1", &json!({"_version": {"N": "7"}}));
    let explain = async |key: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_operator"));
        command.args(["explain", "--table", TABLE, "--key", key]);
        let output =
            patiently("a run", with_environment(command, &server).output()).await.expect("the binary is built");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, _) = explain("accountId=a-1").await;
    let expected = "{\"accountId\":{\"S\":\"a-1\"}}: foreign\n  Another program wrote this row. Its version `_version` is 7.\n  \
                    The first change adopts it and makes version 8.\n\n";
    assert_eq!((code, out.as_str()), (Some(0), expected));
    let (code, _, error) = explain("accountId=a-2").await;
    assert!(code == Some(1) && error.contains("Accounts has no row"), "{error}");
    let (code, _, error) = explain("account=a-1").await;
    assert!(code == Some(2) && error.contains("the key of the table is accountId"), "{error}");
}

/// They are 40 MB. A process that kept them would need more than its address space.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_forty_megabytes_are_explained_and_counted_in_bounded_memory() {
    let server = Server::start(&[(TABLE, KEY)]).await;
    let text = "x".repeat(16_000);
    (0..MANY).for_each(|number| put(&server.engine, &format!("a-{number}"), &json!({"text": {"S": text}})));
    let limited = |command: &str| {
        let mut shell = Command::new("/bin/sh");
        let script = format!("ulimit -v {ADDRESS_SPACE} && exec \"$0\" {command}");
        shell.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_operator"));
        let mut shell = with_environment(shell, &server);
        // One arena of memory, so that the counted memory is the used memory.
        shell.env("MALLOC_ARENA_MAX", "1");
        shell
    };
    let told = to_the_end(limited("explain --table Accounts --json")).await;
    assert_eq!(keys(&told).into_iter().collect::<BTreeSet<_>>().len(), MANY);
    let counted = to_the_end(limited("adopt --table Accounts --json")).await;
    assert_eq!(counted.last().expect("a summary")["summary"]["found"]["written"], MANY);
}
