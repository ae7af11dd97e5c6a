//! The engine in a process of its own, so that it takes no time from what is measured.

use crowds::table;
use std::io;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

/// Starts `bench engine`. Returns it with its endpoint.
///
/// # Errors
/// The process does not start, or it does not say where it answers.
pub async fn start() -> io::Result<(Child, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    // Ctrl-C in the terminal reaches only this process, which then writes its report. The engine ends after it.
    command.arg("engine").process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut engine = command.spawn()?;
    let mut port = String::new();
    let stdout = engine.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
    BufReader::new(stdout).read_line(&mut port).await?;
    match port.trim() {
        "" => Err(io::Error::other("the engine has ended")),
        port => Ok((engine, format!("http://127.0.0.1:{port}"))),
    }
}

/// Serves the engine until the process that started this one ends, however it ends. Prints its port as the first line.
///
/// # Errors
/// No port is free, or nobody reads the output.
pub async fn serve() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = format!("{}\n", listener.local_addr()?.port());
    tokio::io::stdout().write_all(port.as_bytes()).await?;
    tokio::io::stdout().flush().await?;
    let mut nothing = Vec::new();
    tokio::select! {
        () = dynoxide::server::serve_on(listener, table::engine()) => Ok(()),
        ended = async { tokio::io::stdin().read_to_end(&mut nothing).await } => ended.map(|_| ()),
    }
}
