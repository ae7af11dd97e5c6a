//! Runs every function of this workspace on this machine: `cargo dev`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a command-line tool: what it says goes to the terminal"
)]

use std::process::ExitCode;

use clap::Parser;
use dev::{
    args::{Args, Engine, Instead},
    bench,
    dynamodb::{CONTAINER_HOST, DynamoDb},
    failure::Failure,
    functions::{self, Functions},
    gateway, tables,
    template::{DYNAMODB_ENDPOINT, Function, Template},
    watch::{self, Watch},
};
use fencepost::testing::init_tracing;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    let asked = async {
        match args.instead {
            Some(Instead::Bench) => bench::run().await,
            None if args.dynamodb_only => run_dynamodb(&args.engine).await,
            None => run(&args).await,
        }
    };
    let outcome = tokio::select! {
        outcome = asked => outcome,
        stopped = asked_to_stop() => match args.instead {
            Some(Instead::Bench) => stopped.and(Err(Failure::new("The benchmarks were stopped."))),
            None => stopped,
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the functions until something fails. Dropping the future stops everything that it has started.
async fn run(args: &Args) -> Result<(), Failure> {
    let workspace = dev::workspace();
    let template = Template::load(workspace)?;
    let environment = template.environment()?;
    let gateway = gateway::listen(args.port).await?;

    let dynamodb = DynamoDb::start(&args.engine).await?;
    tables::create(&dynamodb, &template.tables).await?;
    let watch = if args.watch {
        watch::check_installed().await?;
        drop(gateway); // the port is for cargo-lambda
        watch::build(&template.functions).await?;
        let mut watch = Watch::start(workspace, args.port, &environment, &dynamodb)?;
        watch.serving().await?;
        Some(watch)
    } else {
        init_tracing(&["dynoxide"]); // the engine warns of each refusal
        let functions = Functions::start(&template, &dynamodb.client_of_functions(), |line| functions::say(&line))?;
        let routes = gateway::routes(&template, &functions);
        tokio::spawn(async move { axum::serve(gateway, routes).await });
        None
    };
    say_what_is_there(args, &dynamodb, &template);
    match watch {
        Some(mut watch) => Err(watch.ended().await),
        None => std::future::pending().await,
    }
}

/// Serves the tables until something fails. Prints the environment with which a function finds them.
async fn run_dynamodb(engine: &Engine) -> Result<(), Failure> {
    let template = Template::load(dev::workspace())?;
    let environment = template.environment()?;
    let dynamodb = DynamoDb::start(engine).await?;
    tables::create(&dynamodb, &template.tables).await?;

    println!("\n{} answers at {}. A function finds its tables there with\n", dynamodb.kind, dynamodb.endpoint);
    for (name, value) in dynamodb.environment() {
        println!("  {name}={value}");
    }
    for (name, value) in environment {
        println!("  {name}={value}");
    }
    say_where_containers_reach(&dynamodb);
    println!("\nCtrl-C stops it.\n");
    std::future::pending().await
}

/// Prints how `sam local` uses this DynamoDB.
fn say_where_containers_reach(dynamodb: &DynamoDb) {
    let Some(endpoint) = &dynamodb.endpoint_in_containers else { return };
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x86_64" };
    println!(
        "\nContainers reach it at {endpoint}. In another terminal:\n\n  sam build --parameter-overrides \
         Architecture={architecture}\n  sam local start-api --add-host {CONTAINER_HOST}:host-gateway \\\n    --parameter-overrides \
         'Architecture={architecture} {DYNAMODB_ENDPOINT}={endpoint}'",
    );
}

/// Waits for Ctrl-C, for `kill`, or until the terminal closes.
async fn asked_to_stop() -> Result<(), Failure> {
    let listen = |kind| signal(kind).map_err(|error| Failure::new(format!("Signals cannot be received: {error}.")));
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}

fn say_what_is_there(args: &Args, dynamodb: &DynamoDb, template: &Template) {
    let Args { port, watch, .. } = args;
    let url = format!("http://127.0.0.1:{port}");
    println!("\nThe functions answer at {url}, {} at {}.", dynamodb.kind, dynamodb.endpoint);
    println!("Their contract is docs/openapi.yaml. Races to watch in a browser: docs/races/index.html.\n");
    for function in &template.functions {
        for route in &function.routes {
            println!("  {:<6} {:<36} {}", route.method, route.path, function.name);
        }
        for queue in &function.queues {
            println!("  SQS    {queue:<36} {}", function.name);
        }
    }
    println!(
        "\nIn another terminal:\n\n  curl -i -X PUT {url}/devices/lamp-1 -H 'content-type: application/json' \
         -d '{{\"state\":{{\"brightness\":50}}}}'"
    );
    // No queue runs here. The command gives a batch to the function, as SQS would, with Lambda's Invoke API.
    for Function { name, .. } in template.functions.iter().filter(|function| !function.queues.is_empty()) {
        println!("  curl -sS -X POST {url}/2015-03-31/functions/{name}/invocations -T events/{name}-batch.json");
    }
    say_where_containers_reach(dynamodb);
    let edits = if *watch { "Edits to the functions are picked up. " } else { "" };
    println!("\n{edits}Ctrl-C stops everything.\n");
}
