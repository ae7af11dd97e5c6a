//! Child processes that never outlive this one.

use std::{io, process::ExitStatus, time::Duration};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::process::{Child, Command};

/// A child that leads a process group of its own, stopped when this value is dropped.
///
/// The group matters twice: Ctrl-C in the terminal reaches this process only, which then stops the rest in order, and
/// what the child has started (compilers, say) is stopped with it.
pub struct Group {
    child: Child,
    leader: Option<Pid>,
}

impl Group {
    /// Starts the command.
    ///
    /// # Errors
    /// Where the operating system cannot start it, most often because the program is not there.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        Ok(Self { child, leader })
    }

    /// Waits until the child ends by itself.
    ///
    /// # Errors
    /// Where the operating system cannot tell.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            let _gone_already = killpg(leader, signal);
        }
    }
}

impl Drop for Group {
    /// Asks the group to end, waits for the child, and kills the group where that takes more than three seconds.
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.signal(Signal::SIGTERM);
        for _ in 0..300 {
            #[allow(
                clippy::disallowed_methods,
                reason = "the end of the program, nothing else is to run: a drop cannot wait asynchronously"
            )]
            std::thread::sleep(Duration::from_millis(10));
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
        }
        self.signal(Signal::SIGKILL);
    }
}
