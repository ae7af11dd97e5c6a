//! The program itself, stopped by a signal.

use super::files::Files;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

#[test]
fn the_program_leaves_a_whole_report_when_it_is_asked_to_stop() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let files = Files::of(&format!("signal{signal}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
        command.arg("--report").arg(files.path()).arg("adds").stdout(Stdio::null()).stderr(Stdio::piped());
        let mut bench = command.spawn().expect("the program starts");
        // It says so when it listens to signals. The part takes much longer than it takes to send one.
        let mut line = String::new();
        let mut stderr = BufReader::new(bench.stderr.take().expect("its output"));
        stderr.read_line(&mut line).expect("a line");
        assert!(line.starts_with("1 part, about "), "{line}");
        let killed = Command::new("kill").arg(signal).arg(bench.id().to_string()).status().expect("kill");
        assert!(killed.success());
        let mut said = String::new();
        stderr.read_to_string(&mut said).expect("its output");
        assert_eq!(bench.wait().expect("the program ends").code(), Some(code), "{signal}: {said}");
        assert!(said.contains("Stopped after 0 of 1 parts. What is finished is in "), "{said}");
        let page = files.page();
        assert!(page.with_id("adds").whole_text().contains("missing: stopped after 0 of 1 parts"), "{signal}");
    }
}
