//! Long random ways through random worlds, where a search of all is impossible. Reads travel too, answers are late or come
//! twice, time passes in milliseconds, and the machine is woken when it asks for that.

use crate::play::Act;
use crate::promises::{EXAMPLES, PROMISES};
use crate::scenes::{beside, two};
use crate::service::scramble;
use crate::state::{Budget, Kind, Scene, Way, World};
use fencepost_core::TableRules;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

const KINDS: [Kind; 14] = [
    Kind::Add(-1),
    Kind::Add(1),
    Kind::AddInBand,
    Kind::AddOrUpdate,
    Kind::Update,
    Kind::Delete,
    Kind::Create,
    Kind::Adds { reads_first: true },
    Kind::Adds { reads_first: false },
    Kind::Order,
    Kind::Cancel,
    Kind::Checked,
    Kind::Restock { reads_second: true },
    Kind::Restock { reads_second: false },
];

/// The most acts of one way.
const MOST_ACTS: u32 = 20_000;

/// A source of numbers.
struct Dice(u64);

impl Dice {
    /// A number below this.
    fn below(&mut self, end: usize) -> usize {
        self.0 = scramble(self.0);
        usize::try_from((self.0 >> 8) % (end as u64)).unwrap_or_default()
    }
}

/// Plays these seeds, or that of `FENCEPOST_SEED`. Returns the examples that were met.
///
/// # Panics
/// If a promise is broken. The message names the seed.
#[must_use]
pub fn play(seeds: Range<u64>) -> BTreeSet<&'static str> {
    let seed = std::env::var("FENCEPOST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = seed.map_or(seeds, |seed: u64| seed..seed + 1);
    let mut met = BTreeSet::new();
    for seed in seeds {
        let (scene, mut dice) = scene(seed);
        let mut worlds = scene.start();
        let mut world = worlds.swap_remove(dice.below(worlds.len()));
        if let Err(broken) = way(&scene, &mut world, &mut dice) {
            panic!("FENCEPOST_SEED={seed}: {broken}\n{:?}\n{:?}", scene.calls, world.callers);
        }
        met.extend(EXAMPLES.iter().filter(|(_, _, holds)| holds(&scene, &world)).map(|(name, ..)| *name));
    }
    met
}

fn scene(seed: u64) -> (Scene, Dice) {
    let mut dice = Dice(scramble(seed));
    let calls: Vec<_> = (0..=dice.below(4)).map(|_| KINDS[dice.below(KINDS.len())]).collect();
    let stock = |dice: &mut Dice| i8::try_from(dice.below(5)).ok().filter(|stock| *stock < 4);
    let stocks = [stock(&mut dice), stock(&mut dice)];
    let small = |dice: &mut Dice, end: usize| u8::try_from(dice.below(end)).unwrap_or_default();
    let mut budget = Budget {
        losses: small(&mut dice, 12),
        copies: 1,
        throttles: small(&mut dice, 6),
        deadlines: small(&mut dice, 2),
        drops: u8::from(dice.below(8) == 0),
        rejections: small(&mut dice, 3),
        others: [small(&mut dice, 12), small(&mut dice, 12)],
        hours: u8::from(dice.below(8) == 0),
        ..Budget::default()
    };
    let is_beside = dice.below(4) == 0;
    budget.overwrites = if is_beside { small(&mut dice, 4) } else { 0 };
    let attempts = 1 + u32::from(small(&mut dice, 7));
    let base = two(&calls, stocks, (6, 3), attempts, budget);
    let base = if is_beside { beside(base, false) } else { base };
    let values_may_end = !is_beside && dice.below(6) == 0;
    let rules = TableRules { values_may_end, ..base.rules };
    let mut budget = base.budget;
    if values_may_end {
        budget.removals = 2;
    }
    (Scene { rules, budget, seed: Some(seed), ..base }, dice)
}

fn way(scene: &Scene, world: &mut World, dice: &mut Dice) -> Result<(), String> {
    for round in 0.. {
        if round == MOST_ACTS {
            return Err("a call does not end".to_owned());
        }
        if world.callers.iter().all(|caller| caller.end.is_some()) {
            break;
        }
        let mut acts = Vec::new();
        scene.acts(world, &mut acts);
        let time = Duration::from_millis(dice.below(3) as u64);
        let due = world.callers.iter().filter_map(|caller| caller.run.as_ref()?.change.wake_at()).min();
        let act = match (dice.below(8), due) {
            (0, Some(due)) => Act::Pass(due.saturating_sub(world.now)),
            (0 | 1, _) => Act::Pass(time),
            _ if acts.is_empty() => Act::Pass(time),
            // Most calls should meet more than their own requests.
            _ => acts.swap_remove(dice.below(acts.len())),
        };
        scene.act(world, &act);
        kept(scene, world)?;
    }
    // At last, every copy arrives.
    for _ in 0..2 {
        for flight in (0..world.flights.len()).rev() {
            let is_late = world.flights[flight].way == Way::Unheard;
            scene.act(world, &if is_late { Act::Meet(flight, false) } else { Act::Copy(flight) });
        }
    }
    kept(scene, world)
}

fn kept(scene: &Scene, world: &World) -> Result<(), String> {
    let broken = PROMISES.iter().find(|(_, holds)| !holds(scene, world));
    broken.map_or(Ok(()), |(name, _)| Err(format!("broken: {name}")))
}
