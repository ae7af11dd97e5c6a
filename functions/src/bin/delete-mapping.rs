//! The Lambda function `delete-mapping`: wiring only.

use fencepost::Source;
use fencepost::lambda::serve_queue;
use functions::delete_mapping;
use functions::function::PROCESS;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    serve_queue(|store| delete_mapping::App::from_env(store, PROCESS), delete_mapping::handle).await
}
