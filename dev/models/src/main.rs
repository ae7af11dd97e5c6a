//! Plays the models and prints the findings. `docs/models.md` says how to read it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use clap::Parser;
use models::scenes::{MODELS, Removal, check, removals};
use std::process::ExitCode;

/// Plays the models and prints the findings
#[derive(Parser)]
struct Asked {
    /// Play this model only
    #[arg(value_parser = MODELS)]
    model: Option<String>,
    /// Visit the large state spaces
    #[arg(long)]
    deep: bool,
    /// Use N threads (default: one for each core)
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Tell the story without this rule
    #[arg(long, value_name = "RULE")]
    without: Option<String>,
    /// List the rules
    #[arg(long)]
    rules: bool,
}

fn main() -> ExitCode {
    let asked = Asked::parse();
    let is_fine = if asked.rules {
        for removal in removals() {
            println!("{} {}: {}", removal.named.model, removal.named.name, removal.rule);
        }
        true
    } else if let Some(rule) = &asked.without {
        without(rule, asked.model.as_deref())
    } else {
        let threads = asked.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let found = check(asked.deep, threads, asked.model.as_deref(), |line| println!("{line}"));
        let is_fine = found.wrong.is_empty();
        println!("states={} seconds={:.1} fine={is_fine}", found.states, found.seconds);
        is_fine
    };
    if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tells the story without a rule.
fn without(rule: &str, model: Option<&str>) -> bool {
    let removals = removals();
    let is_it =
        |removal: &&Removal| removal.named.name == rule && model.is_none_or(|model| model == removal.named.model);
    let found: Vec<_> = removals.iter().filter(is_it).collect();
    for removal in &found {
        println!("{} without the rule \"{}\":", removal.named.model, removal.rule);
        match removal.named.scene.play(1).violated {
            Some((property, story)) => println!("{story}Violated: {property}."),
            None => println!("Nothing is violated."),
        }
    }
    if found.is_empty() {
        eprintln!("there is no rule {rule}; --rules lists them");
    }
    !found.is_empty()
}
