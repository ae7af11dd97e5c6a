//! Child processes that never outlive this one.

use std::{io, process::ExitStatus, time::Duration};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::process::{Child, Command};

use crate::failure::Failure;

/// A child process that leads its own process group. It is stopped when this value is dropped.
///
/// The group has two uses. Ctrl-C in the terminal reaches only this process, which then stops the others in order. And
/// the child's own processes, such as compilers, stop with it.
pub struct Group {
    child: Child,
    leader: Option<Pid>,
}

impl Group {
    /// Starts the command.
    ///
    /// # Errors
    /// The operating system cannot start it, most often because the program does not exist.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        Ok(Self { child, leader })
    }

    /// Waits until the child ends by itself.
    ///
    /// # Errors
    /// The operating system cannot tell.
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
    /// Asks the group to end, and waits for the child. Kills the group after three seconds.
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

/// Runs cargo with these words in the root of the workspace. It shows its own progress on the terminal.
///
/// # Errors
/// Cargo does not start, or it fails: then with this sentence.
pub async fn cargo(command: impl FnOnce(&mut Command), failed: impl FnOnce() -> String) -> Result<(), Failure> {
    // Cargo tells its children which cargo it is. cargo-lambda uses this variable too.
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command(cargo.current_dir(crate::workspace()));
    let mut cargo = Group::spawn(&mut cargo)
        .map_err(|error| Failure::new(format!("cargo does not start ({error}): is it on the PATH?")))?;
    match cargo.ended().await {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Failure::new(failed())),
    }
}
