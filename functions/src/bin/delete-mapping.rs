//! The Lambda function `delete-mapping`: wiring only.

use fencepost::lambda::{Error, serve_queue};
use functions::delete_mapping::{App, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve_queue(App::from_env, handle).await
}
