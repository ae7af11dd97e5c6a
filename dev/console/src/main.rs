//! Plays the stories and writes their recordings for the page in `docs/races/`: `cargo run -p console`.

fn main() -> std::io::Result<()> {
    std::fs::write(console::file(), console::recordings())
}
