//! Plays the models and prints the findings. `docs/models.md` says how to read it.
//!
//! `models [--deep] [--threads N] [MODEL]`, `models --without RULE`, `models --rules`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use lexopt::prelude::*;
use models::run::{Removal, Scene};
use models::scenes::{MODELS, removals, scenes};
use std::collections::BTreeSet;
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
            println!("{} {}: {}", removal.scene.model, removal.scene.name, removal.rule);
        }
        true
    } else if let Some(rule) = &asked.without {
        without(rule, asked.model.as_deref())
    } else {
        all(&asked)
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

/// Plays all scenes, and all rules too. Returns whether each scene holds and each rule is needed.
fn all(asked: &Asked) -> bool {
    let threads = asked.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let is_asked = |scene: &Scene| asked.model.as_deref().is_none_or(|model| model == scene.model);
    let (mut is_fine, mut total, mut seconds) = (true, 0, 0.0);
    let (mut examples, mut wanted) = (BTreeSet::new(), BTreeSet::new());
    for scene in scenes(asked.is_deep).iter().filter(|scene| is_asked(scene)) {
        let played = scene.play(threads);
        let Scene { model, name, .. } = scene;
        println!(
            "model={model} scene={name} states={} depth={} seconds={:.1}",
            played.unique, played.depth, played.seconds
        );
        if let Some((property, story)) = &played.violated {
            println!("violated: {property}\n{story}");
            is_fine = false;
        }
        total += played.unique;
        seconds += played.seconds;
        examples.extend(played.examples.into_iter().map(|example| (*model, example)));
        wanted.extend(played.wanted.into_iter().map(|example| (*model, example)));
    }
    for (model, missing) in wanted.difference(&examples) {
        println!("model={model} never shows: {missing}");
        is_fine = false;
    }
    for removal in removals().iter().filter(|removal| is_asked(&removal.scene)) {
        let played = removal.scene.play(1);
        let Removal { scene: Scene { model, name, .. }, keeps, .. } = removal;
        match &played.violated {
            Some((property, story)) if property == keeps => {
                println!("model={model} without={name} breaks=\"{property}\" steps={}", story.lines().count());
            }
            other => {
                println!("model={model} without={name} should break \"{keeps}\", and this was found: {other:?}");
                is_fine = false;
            }
        }
    }
    println!("states={total} seconds={seconds:.1} fine={is_fine}");
    is_fine
}

/// Tells the story without a rule.
fn without(rule: &str, model: Option<&str>) -> bool {
    let removals = removals();
    let is_it =
        |removal: &&Removal| removal.scene.name == rule && model.is_none_or(|model| model == removal.scene.model);
    let found: Vec<_> = removals.iter().filter(is_it).collect();
    for removal in &found {
        println!("{} without the rule \"{}\":", removal.scene.model, removal.rule);
        match removal.scene.play(1).violated {
            Some((property, story)) => println!("{story}Violated: {property}."),
            None => println!("Nothing is violated."),
        }
    }
    if found.is_empty() {
        eprintln!("there is no rule {rule}; --rules lists them");
    }
    !found.is_empty()
}
