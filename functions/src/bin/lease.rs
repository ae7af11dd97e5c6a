//! The Lambda function `lease`: wiring only.

use fencepost::lambda::{Error, serve};
use functions::function::PROCESS;
use functions::lease;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve(|store| Ok(lease::App::from_env(store, PROCESS)?.into_router())).await
}
