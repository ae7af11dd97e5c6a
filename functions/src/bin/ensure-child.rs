//! The Lambda function `ensure-child`: wiring only.

use fencepost::lambda::{Error, serve};
use functions::ensure_child::{App, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve(App::from_env, handle).await
}
