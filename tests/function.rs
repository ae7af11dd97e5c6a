//! Runs one of the functions by name, as its own `main.rs` does: `function device-state`.
//!
//! The tests need the functions as processes, and cargo builds a binary for them only from their own package.

use fencepost::lambda::{Error, serve, serve_queue};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    match std::env::args().nth(1).as_deref() {
        Some("device-state") => serve(device_state::App::from_env, device_state::handle).await,
        Some("delete-mapping") => serve_queue(delete_mapping::App::from_env, delete_mapping::handle).await,
        Some("ensure-child") => serve(ensure_child::App::from_env, ensure_child::handle).await,
        Some("host-mapping") => serve(host_mapping::App::from_env, host_mapping::handle).await,
        Some("inventory") => serve(inventory::App::from_env, inventory::handle).await,
        Some("lease") => serve(lease::App::from_env, lease::handle).await,
        Some("place-order") => serve(place_order::App::from_env, place_order::handle).await,
        other => Err(format!("no function is called {other:?}").into()),
    }
}
