//! Programs that misuse the interface do not compile, and the compiler says why. `misuse/*.rs` has them, each mistake on a
//! line with what became of it when edits were made of names and values of any type.

/// The messages are those of one version of the compiler, the `rust-version` of the workspace. Under another one, nothing
/// is compared.
#[test]
fn misuse_does_not_compile() {
    let version = std::process::Command::new("rustc").arg("--version").output().expect("a compiler");
    let version = String::from_utf8(version.stdout).expect("text");
    if version.starts_with(&format!("rustc {}", env!("CARGO_PKG_RUST_VERSION"))) {
        trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
    }
}
