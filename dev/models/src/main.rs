//! Plays the models and prints the findings. `docs/models.md` says how to read it.
//!
//! `models [--deep] [--threads N] [MODEL]`, `models --without RULE`, `models --rules`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use lexopt::prelude::*;
use models::scenes::{MODELS, Removal, check, removals};
use std::process::ExitCode;

#[derive(Default)]
struct Asked {
    is_deep: bool,
    threads: Option<usize>,
    model: Option<String>,
    without: Option<String>,
    rules: bool,
}

fn main() -> ExitCode {
    let asked = match asked() {
        Ok(asked) => asked,
        Err(error) => {
            eprintln!("{error}\nmodels [--deep] [--threads N] [MODEL] | --without RULE | --rules");
            return ExitCode::from(2);
        }
    };
    let is_fine = if asked.rules {
        for removal in removals() {
            println!("{} {}: {}", removal.named.model, removal.named.name, removal.rule);
        }
        true
    } else if let Some(rule) = &asked.without {
        without(rule, asked.model.as_deref())
    } else {
        let threads = asked.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let found = check(asked.is_deep, threads, asked.model.as_deref(), |line| println!("{line}"));
        let is_fine = found.wrong.is_empty();
        println!("states={} seconds={:.1} fine={is_fine}", found.states, found.seconds);
        is_fine
    };
    if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn asked() -> Result<Asked, lexopt::Error> {
    let mut asked = Asked::default();
    let mut words = lexopt::Parser::from_env();
    while let Some(word) = words.next()? {
        match word {
            Long("deep") => asked.is_deep = true,
            Long("rules") => asked.rules = true,
            Long("threads") => asked.threads = Some(words.value()?.parse()?),
            Long("without") => asked.without = Some(words.value()?.string()?),
            Value(model) if asked.model.is_none() => {
                let model = model.string()?;
                if !MODELS.contains(&model.as_str()) {
                    return Err(format!("there is no model {model}; there are {}", MODELS.join(", ")).into());
                }
                asked.model = Some(model);
            }
            word => return Err(word.unexpected()),
        }
    }
    Ok(asked)
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
