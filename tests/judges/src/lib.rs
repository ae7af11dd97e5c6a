//! Judges that know only the clients' requests, the answers and the times. They know no write id and no request to an
//! engine. This package does not depend on Fencepost and cannot share a mistake of the protocol.
//!
//! [`linearizable`] asks `stateright` whether one order of the operations on an object explains all answers.
//! [`register`] models an item: a register with reads, compare-and-set, adds and deletes. [`cycles`] looks for cycles
//! of dependencies between transactions over several items.

pub mod cycles;
pub mod linearizable;
pub mod register;
