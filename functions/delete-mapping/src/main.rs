//! The Lambda function `delete-mapping`: wiring only.

use delete_mapping::{App, handle};
use fencepost::lambda::{Error, serve_queue};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve_queue(App::from_env, handle).await
}
