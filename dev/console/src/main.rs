//! Plays the stories and writes their recordings for the page in `docs/races/`: `cargo run -p console`.

fn main() -> std::io::Result<()> {
    console::files().iter().try_for_each(|(path, text)| std::fs::write(path, text))
}
