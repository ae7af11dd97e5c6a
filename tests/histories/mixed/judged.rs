//! What the clients of Fencepost saw of the item, for a judge that knows nothing else.

use super::record::Stored;
use super::writer::{Operation, Told};
use judges::linearizable::Seen;
use judges::register::{self, Op, SeenOf, Shown, Value};
use tokio::time::Instant;

impl Value for Stored {
    type Amount = ();

    fn plus(&self, (): &()) -> Option<Self> {
        Some(self.added())
    }
}

impl Operation {
    /// The operation as its client saw it. `None` if it was told that nothing was done, and nothing about the item: then
    /// nothing that others see may need it.
    pub fn seen(&self) -> Option<SeenOf<Stored>> {
        let Operation { client, began, ended, .. } = *self;
        let (op, told) = match &self.told {
            Told::Applied(..) | Told::Landed => (self.asked()?, Some(register::Told::Done(None))),
            Told::Saw(_, stored) => {
                let shown = Shown { value: stored.clone(), at: None };
                (Op::Read, Some(register::Told::Saw(Some(shown))))
            }
            Told::SawNothing => (Op::Read, Some(register::Told::Saw(None))),
            Told::Unknown => (self.asked()?, None),
            Told::NotApplied => return None,
        };
        let [began, ended] = [began, ended].map(Instant::into_std);
        Some(Seen { client, began, ended, op, told })
    }

    /// The same as something that may happen at any time from now on.
    pub fn may_come_again(&self) -> Option<SeenOf<Stored>> {
        let Operation { client, began, ended, .. } = *self;
        let [began, ended] = [began, ended].map(Instant::into_std);
        Some(Seen { client, began, ended, op: self.asked()?, told: None })
    }

    /// What it asked for. `None` if it decided nothing, so that it cannot have sent a write.
    fn asked(&self) -> Option<Op<Stored>> {
        Some(match self.what {
            "get" => Op::Read,
            "create" => Op::Create(Stored::new(self.number)),
            "delete" | "delete at version" => Op::Delete,
            "add" | "add with a note" => Op::Add(()),
            _ => {
                // What was told counts, and not the last decision.
                let told = if let Told::Applied(_, Some((_, to))) = &self.told { Some(to) } else { None };
                let told = told.map(|to| (to.before(), to.clone()));
                let (from, to) = told.or_else(|| self.decided.clone())?;
                Op::CompareAndSet { from, to }
            }
        })
    }
}
