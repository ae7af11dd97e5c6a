//! [`Progress`]: what a long run says while it goes on, on standard error.
#![allow(clippy::print_stderr, reason = "this is a command-line tool: its progress goes to the terminal")]
#![expect(clippy::disallowed_methods, reason = "measures how long the run takes")]

use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How far a run is, and how long it will take.
#[derive(Clone, Debug)]
pub struct Progress {
    is_terminal: bool,
    begun: Instant,
    expected: Vec<Duration>,
}

impl Progress {
    /// A run begins. `expected` are the times that its parts take on some machine. Their ratios count.
    #[must_use]
    pub fn new(expected: Vec<Duration>) -> Self {
        Progress { is_terminal: std::io::stderr().is_terminal(), begun: Instant::now(), expected }
    }

    /// Says how long all of it takes.
    pub fn begin(&self) {
        let count = self.expected.len();
        let plural = if count == 1 { "" } else { "s" };
        let left = in_words(left(&self.expected, 0, 0.0, Duration::ZERO));
        eprintln!("{count} part{plural}, {left}. Ctrl-C stops the run and keeps what is finished.");
    }

    /// The part of this index is done by this share. On a terminal, rewrites the one line.
    pub fn show(&self, index: usize, title: &str, share: f64) {
        if self.is_terminal {
            let left = in_words(left(&self.expected, index, share, self.begun.elapsed()));
            let all = self.expected.len();
            eprint!("\r\x1b[2K[{} of {all}] {title}, {:.0} %, {left}", index + 1, share * 100.0);
        }
    }

    /// The part of this index has ended. A log gets a line, and a terminal has room for the table.
    pub fn ended(&self, index: usize, title: &str, took: Duration) {
        if self.is_terminal {
            eprint!("\r\x1b[2K");
        } else {
            let left = in_words(left(&self.expected, index + 1, 0.0, self.begun.elapsed()));
            eprintln!("[{} of {}] {title}: {:.1} s, {left}", index + 1, self.expected.len(), took.as_secs_f64());
        }
    }

    /// Says something on a line of its own.
    pub fn say(&self, sentence: &str) {
        let clear = if self.is_terminal { "\r\x1b[2K" } else { "" };
        eprintln!("{clear}{sentence}");
    }
}

/// The time that is left after `done` parts and a share of the next one.
///
/// This machine may be faster or slower than the one of the expected times. What it has done shows by how much.
#[must_use]
pub fn left(expected: &[Duration], done: usize, share: f64, elapsed: Duration) -> Duration {
    let seconds = |parts: &[Duration]| parts.iter().sum::<Duration>().as_secs_f64();
    let (behind, ahead) = expected.split_at(done.min(expected.len()));
    let begun = ahead.first().map_or(0.0, |part| part.as_secs_f64() * share.clamp(0.0, 1.0));
    let done = seconds(behind) + begun;
    let slower = if done < 1.0 { 1.0 } else { elapsed.as_secs_f64() / done };
    Duration::from_secs_f64(((seconds(ahead) - begun) * slower).max(0.0))
}

/// A time in round words.
#[must_use]
pub fn in_words(left: Duration) -> String {
    match left.as_secs() {
        0 if left.is_zero() => "done".to_owned(),
        0..5 => "a few seconds left".to_owned(),
        seconds @ 5..90 => format!("about {} s left", seconds.div_ceil(5) * 5),
        seconds => format!("about {} min left", (seconds + 30) / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: [Duration; 3] = [Duration::from_secs(10), Duration::from_secs(20), Duration::from_secs(30)];

    fn after(done: usize, share: f64, elapsed: u64) -> u64 {
        left(&EXPECTED, done, share, Duration::from_secs(elapsed)).as_secs()
    }

    #[test]
    fn what_was_slow_until_now_stays_slow() {
        assert_eq!(after(0, 0.0, 0), 60);
        assert_eq!(after(1, 0.0, 10), 50);
        assert_eq!(after(1, 0.0, 30), 150);
        assert_eq!(after(1, 0.5, 40), 80);
        assert_eq!(after(2, 1.0, 60), 0);
        assert_eq!(after(3, 0.0, 60), 0);
    }

    #[test]
    fn a_first_moment_says_nothing_about_the_machine() {
        assert_eq!(after(0, 0.01, 30), 59);
    }

    #[test]
    fn a_time_is_told_in_round_words() {
        let told = [0, 3, 41, 85, 100, 600].map(|seconds| in_words(Duration::from_secs(seconds)));
        let expected = [
            "done",
            "a few seconds left",
            "about 45 s left",
            "about 85 s left",
            "about 2 min left",
            "about 10 min left",
        ];
        assert_eq!(told, expected);
    }
}
