//! The Lambda function `place-order`: wiring only.

use fencepost::lambda::{Error, serve};
use functions::place_order::{App, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve(App::from_env, handle).await
}
