//! The Lambda function `lease`: wiring only.

use fencepost::Source;
use fencepost::lambda::serve;
use functions::function::PROCESS;
use functions::lease;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    serve(|store| Ok(lease::App::from_env(store, PROCESS)?.into_router())).await
}
