//! The Lambda function `settle-holds`: wiring only.

use fencepost::Source;
use fencepost::lambda::serve_schedule;
use functions::function::PROCESS;
use functions::settle_holds;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    serve_schedule(|store| settle_holds::App::from_env(store, PROCESS), settle_holds::settle).await
}
