//! The Lambda function `ensure-child`: wiring only.

use ensure_child::{App, handle};
use fencepost::lambda::{Error, serve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve(App::from_env, handle).await
}
