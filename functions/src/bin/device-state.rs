//! The Lambda function `device-state`: wiring only.

use fencepost::Source;
use fencepost::lambda::serve;
use functions::device_state;
use functions::function::PROCESS;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    serve(|store| Ok(device_state::App::from_env(store, PROCESS)?.into_router())).await
}
