//! Parts of files that are derived from `FUNCTION`. Each stands between two marks in its file.

use super::files::{Complaints, read, root, template};
use crate::harness::functions::all_routes;
use functions::function::{Event, Function, Variable};
use functions::operation::IdempotencyKey;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Mutex;

/// Writes the parts that differ, if it is set.
const WRITE: &str = "FENCEPOST_WRITE";

/// Two tests may write one file.
static WRITING: Mutex<()> = Mutex::new(());

/// Compares the part of this name, or writes it.
pub fn compare(file: &str, part: &str, derived: &str, found: &mut Complaints) {
    let guard = WRITING.lock().expect("no panic while writing");
    let text = read(file);
    let mark = format!("derived: {part}");
    let (begin, end) = text
        .find(&mark)
        .and_then(|at| Some(at + text[at..].find('\n')? + 1))
        .and_then(|begin| Some((begin, begin + text[begin..].find("end of derived")?)))
        .unwrap_or_else(|| panic!("{file}: no part is marked `{mark}` and `end of derived`"));
    let end = text[..end].rfind('\n').map_or(0, |line| line + 1);
    if text[begin..end] == *derived {
        return;
    }
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(root().join(file), [&text[..begin], derived, &text[end..]].concat()).expect("a file");
        let _ = std::io::stderr().write_fmt(format_args!("wrote {file}: {part}\n")); // also of a test that passes
    } else {
        found.push(format!(
            "{file}: the part `{part}` is not what the functions say; \
             `{WRITE}=1 cargo test -q -p tests --test all repository` writes it"
        ));
    }
    drop(guard);
}

/// Compares one part, or writes it.
fn hold(file: &str, part: &str, derived: &str) {
    let mut found = Complaints::default();
    compare(file, part, derived, &mut found);
    found.report();
}

/// The functions with routes, each with its routes by their paths, in the order of the code.
fn paths() -> Vec<(&'static str, Vec<(&'static Function, &'static str)>)> {
    let mut paths = Vec::<(_, Vec<_>)>::new();
    for function in functions::ALL {
        for route in function.routes() {
            let (method, path) = route.at.split_once(' ').expect("a method and a path");
            match paths.iter_mut().find(|(known, _)| *known == path) {
                Some((_, methods)) => methods.push((function, method)),
                None => paths.push((path, vec![(function, method)])),
            }
        }
    }
    paths
}

#[test]
fn cargo_lambda_watch_has_every_route() {
    let mut router = String::new();
    for (path, methods) in paths() {
        let target = |(function, method): &(&Function, &str)| {
            format!(r#"{{ function = "{}", method = "{method}" }}"#, function.name)
        };
        let targets: Vec<_> = methods.iter().map(target).collect();
        let list = match targets.as_slice() {
            [one] => format!("[{one}]"),
            several => format!("[\n  {},\n]", several.join(",\n  ")),
        };
        let _ = writeln!(router, r#""{path}" = {list}"#);
    }
    hold("Cargo.toml", "router", &router);
}

#[test]
fn cargo_builds_every_binary_and_tests_none() {
    let bins = functions::ALL.iter().map(|function| format!("[[bin]]\nname = \"{}\"\ntest = false\n\n", function.name));
    hold("functions/Cargo.toml", "binaries", &bins.collect::<String>());
}

#[test]
fn the_readme_lists_every_route_and_every_queue() {
    let template = template();
    let mut rows = "\n| route | function | what it does |\n|---|---|---|\n".to_owned();
    for Function { name, event, .. } in functions::ALL {
        let mut row = |route: &str, text: &str| {
            let _ = writeln!(rows, "| {route} | `{name}` | {text} |");
        };
        let declared = || template.functions.iter().filter(|known| known.name == *name);
        match event {
            Event::Http { routes, .. } => {
                for route in routes() {
                    row(&format!("`{}`", route.at), route.summary);
                }
            }
            Event::Sqs { message, .. } => {
                for queue in declared().flat_map(|known| &known.queues) {
                    row(&format!("a message in `{queue}`"), message);
                }
            }
            Event::Schedule { work, .. } => {
                for schedule in declared().flat_map(|known| &known.schedules) {
                    row(&format!("`{schedule}`"), work);
                }
            }
        }
    }
    rows.push('\n');
    hold("docs/http-api.md", "routes", &rows);
}

#[test]
fn the_page_about_http_says_which_routes_honour_a_key() {
    let of = |key| -> Vec<_> {
        all_routes().filter(|route| route.key == key).map(|route| format!("`{}`", route.at)).collect()
    };
    let (honoured, refused) = (of(IdempotencyKey::Honoured), of(IdempotencyKey::Refused));
    let mut rows = "\n| honoured by | refused by, with 400 `idempotency_key_unsupported` |\n|---|---|\n".to_owned();
    for line in 0..honoured.len().max(refused.len()) {
        let cell = |column: &[String]| column.get(line).cloned().unwrap_or_default();
        let _ = writeln!(rows, "| {} | {} |", cell(&honoured), cell(&refused));
    }
    rows.push('\n');
    hold("docs/http-api.md", "keys", &rows);
}

#[test]
fn the_page_about_operations_has_every_variable() {
    let mut variables = Vec::<(Variable, BTreeSet<&str>)>::new();
    for function in functions::ALL {
        for variable in function.variables {
            match variables.iter_mut().find(|(known, _)| known.name == variable.name) {
                Some((_, readers)) => _ = readers.insert(function.name),
                None => variables.push((*variable, BTreeSet::from([function.name]))),
            }
        }
    }
    let mut rows = "\n| variable | read by | meaning |\n|---|---|---|\n".to_owned();
    for (Variable { name, means, default_seconds }, readers) in variables {
        let default = default_seconds.map(|seconds| format!(", default {seconds}")).unwrap_or_default();
        let readers: Vec<_> = readers.iter().map(|reader| format!("`{reader}`")).collect();
        let _ = writeln!(rows, "| `{name}` | {} | {means}{default} |", readers.join(", "));
    }
    rows.push('\n');
    hold("docs/operations.md", "variables", &rows);
}
