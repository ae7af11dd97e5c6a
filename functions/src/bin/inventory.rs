//! The Lambda function `inventory`: wiring only.

use fencepost::lambda::{Error, serve};
use functions::function::PROCESS;
use functions::inventory;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve(|store| Ok(inventory::App::from_env(store, PROCESS)?.into_router())).await
}
