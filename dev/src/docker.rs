//! Where containers of Docker reach this machine.

use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;

use crate::failure::Failure;

/// The name of this machine in a container. `--add-host host.docker.internal:host-gateway` gives it to a container.
pub const HOST: &str = "host.docker.internal";

/// The interface of Docker's default bridge on Linux.
const BRIDGE: &str = "docker0";

/// Finds the address of Docker's bridge. Containers reach the servers there. Returns `None` where Docker runs in a
/// virtual machine and takes containers to 127.0.0.1, as on macOS.
///
/// # Errors
/// This machine has no such interface.
pub fn bridge() -> Result<Option<IpAddr>, Failure> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let named = getifaddrs().into_iter().flatten().filter(|interface| interface.interface_name == BRIDGE);
    let mut addresses = named.filter_map(|interface| Some(interface.address?.as_sockaddr_in()?.ip()));
    match addresses.next() {
        Some(address) => Ok(Some(address.into())),
        None => Err(Failure::new(format!(
            "Containers cannot be answered, because there is no interface {BRIDGE}: start Docker Engine (neither \
             Docker Desktop nor a rootless Docker has one on Linux), or leave --containers out."
        ))),
    }
}
