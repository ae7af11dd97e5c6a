//! [`Fault`]: why a change ended without a proof that it was applied.

/// The number of one send of a change, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SendId(pub u32);

/// What stands behind a fault. The errors themselves stay with whoever sends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// The error of this send.
    Send(SendId),
    /// A rule of the protocol, in words.
    Said(&'static str),
    /// The attempts or the time were used up.
    Contention {
        /// The number of attempts.
        attempts: u32,
    },
    /// The version of a row went down.
    VersionWentDown,
}

/// Why a change ended without a proof that it was applied. All but the last prove that nothing was applied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// Conflicts used up the attempts or the time.
    Contention {
        /// The number of attempts.
        attempts: u32,
    },
    /// The service could not be asked in time.
    Unavailable(Cause),
    /// The service rejected the request itself.
    Rejected(SendId),
    /// The version of a row went down, with nothing pending.
    VersionWentDown,
    /// Nothing proves whether the change was applied or still will be.
    Unknown(Cause),
}

impl Fault {
    /// The fault at the end of a change with open attempts: one of them may have been applied since its refusal.
    #[must_use]
    pub fn while_open(self) -> Self {
        Fault::Unknown(match self {
            Fault::Unavailable(cause) | Fault::Unknown(cause) => cause,
            Fault::Rejected(by) => Cause::Send(by),
            Fault::Contention { attempts } => Cause::Contention { attempts },
            Fault::VersionWentDown => Cause::VersionWentDown,
        })
    }
}
