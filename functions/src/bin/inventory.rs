//! The Lambda function `inventory`: wiring only.

use fencepost::lambda::{Error, serve};
use functions::function::PROCESS;
use functions::inventory;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve(|store| inventory::App::from_env(store, PROCESS), inventory::handle).await
}
