//! Where containers of Docker reach this machine.

use std::net::IpAddr;
use std::process::Stdio;
use tokio::process::Command;

use crate::failure::Failure;

/// The name of this machine in a container. `--add-host host.docker.internal:host-gateway` gives it to a container.
pub const HOST: &str = "host.docker.internal";

/// Finds the address of Docker's bridge. Containers reach what listens there. Returns `None` where Docker runs in a
/// virtual machine and takes containers to 127.0.0.1, as on macOS.
///
/// # Errors
/// Docker does not answer.
pub async fn bridge() -> Result<Option<IpAddr>, Failure> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let unusable = |why: &str| {
        Failure::new(format!(
            "Docker does not say where containers reach this machine ({}): start Docker, or leave --containers out.",
            why.trim()
        ))
    };
    let mut command = Command::new("docker");
    command.args(["network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}"]);
    let output = command.stdin(Stdio::null()).output().await.map_err(|error| unusable(&error.to_string()))?;
    if !output.status.success() {
        return Err(unusable(&String::from_utf8_lossy(&output.stderr)));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim().parse().map(Some).map_err(|_| unusable(&said))
}
