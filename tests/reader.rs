//! Reads an item as a user's own program does: `reader ITEM`.
//!
//! The client comes from the SDK's default configuration, with the SDK's own credentials. The crate adds only the HTTP
//! client. A failed read is repeated: the SDK has limited time to look for credentials, perhaps too little on a slow
//! machine. The test ends a program without success.
#![allow(clippy::print_stdout, reason = "the test reads what it found")]
#![allow(clippy::print_stderr, reason = "why a read failed")]

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use fencepost::lambda::https_client;
use fencepost::{Record, Source, Store, Table};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(key = "noteId")]
struct Note {
    text: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    let id = std::env::args().nth(1).ok_or("reader ITEM")?;
    let config = aws_config::defaults(BehaviorVersion::latest()).http_client(https_client()).load().await;
    let notes: Table<Note> = Store::new(&Client::new(&config)).table("Notes");
    loop {
        match notes.get(id.as_str()).await {
            Ok(note) => {
                println!("{}", note.ok_or("there is no such note")?.value.text);
                return Ok(());
            }
            Err(failure) => eprintln!("{failure}: {:?}", std::error::Error::source(&failure)),
        }
    }
}
