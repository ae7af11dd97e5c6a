//! The Lambda function `inventory`: wiring only.

use fencepost::lambda::{Error, serve};
use functions::inventory::{App, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve(App::from_env, handle).await
}
