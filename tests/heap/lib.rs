//! How much memory one request may take: a search for the worst body and the worst stored item of each route, by hill
//! climbing from random inputs.
//!
//! The functions answer real events. Their requests go through the real SDK to canned answers, so that an engine does not
//! count. See `cases` for the routes and their bounds.
#![cfg(test)]

mod cases;
mod functions;
mod shape;

use cases::{Base, CASES, Case, Input, PEAK};
use fastrand::Rng;
use fencepost_test::seeds::{SEED, asked};
use functions::{Functions, Took};
use std::fmt::Write;

/// The most allocations of an invocation, which stand for its time.
const ALLOCATIONS: u64 = 2_000_000;

/// The figures that a search maximises.
const AIMS: [fn(&Took) -> u64; 2] = [|took| took.heap.bytes_max, |took| took.heap.count_total];

/// The worst input that was found, and its cost.
struct Worst {
    input: Input,
    took: Took,
}

fn search(functions: &Functions, base: &Base, case: &Case, rng: &mut Rng, steps: u64, aim: fn(&Took) -> u64) -> Worst {
    let try_out = |input: Input| Worst { took: case.play(functions, base, &input), input };
    let mut worst = try_out(Input::random(rng));
    for step in 1..steps {
        let next = if step < steps / 3 { Input::random(rng) } else { worst.input.varied(rng) };
        let next = try_out(next);
        assert!(next.took.status != 500, "{}: {:?}", case.name, next.input);
        if aim(&next.took) > aim(&worst.took) {
            worst = next;
        }
    }
    worst
}

#[test]
#[expect(clippy::print_stdout, reason = "what was found goes into docs/benchmarks.md")]
fn no_body_and_no_stored_item_takes_more_than_a_function_has() {
    let seed = asked(SEED).unwrap_or(1);
    let steps = asked("FENCEPOST_HEAP_STEPS").unwrap_or(12);
    println!("seed {seed}, {steps} steps");
    let functions = Functions::new();
    let base = Base::made_by(&functions);
    let mut too_much = String::new();
    let only = std::env::var("FENCEPOST_HEAP_CASE").unwrap_or_default();
    for (index, case) in (0..).zip(CASES).filter(|(_, case)| case.name.contains(&only)) {
        let mut rng = Rng::with_seed(seed + index);
        for aim in AIMS {
            let Worst { input, took } = search(&functions, &base, case, &mut rng, steps, aim);
            let (peak, count) = (took.heap.bytes_max, took.heap.count_total);
            let time = (0..3).map(|_| case.play(&functions, &base, &input).time).min().unwrap_or_default();
            println!(
                "{:?}, {}: {} KB, {count} allocations, {time:?}, {} with {} bytes, {input:?}",
                case.function,
                case.name,
                peak / 1024,
                took.status,
                took.answer.len()
            );
            if peak > PEAK || count > ALLOCATIONS {
                writeln!(too_much, "{:?}, {}", case.function, case.name).expect("a text takes all");
            }
        }
    }
    assert!(too_much.is_empty(), "seed {seed}:\n{too_much}");
}
