//! Judges that know only what clients asked, what they were told, and when. They know no write id and no request, and this
//! package depends on nothing of Fencepost, so no mistake of the protocol can be theirs too.
//!
//! [`linearizable`] asks `stateright` whether one order of the operations on an object explains all answers.
//! [`register`] says what an item is: a register with reads, compare-and-set, adds and deletes. [`cycles`] looks for
//! cycles of dependencies between transactions over several items. [`made_up`] shows what a judge accepts.

pub mod cycles;
pub mod linearizable;
pub mod made_up;
pub mod register;
