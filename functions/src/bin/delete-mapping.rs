//! The Lambda function `delete-mapping`: wiring only.

use fencepost::lambda::{Error, serve_queue};
use functions::delete_mapping;
use functions::function::PROCESS;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve_queue(|store| delete_mapping::App::from_env(store, PROCESS), delete_mapping::handle).await
}
