//! What a function needs outside its folder: its tables, its logical id, its events in CI, its pages.

use super::files::{
    Complaints, events, files, folder_of, functions, has_row, read, relative, root, routes_in_template, sources,
    strings, template,
};
use dev::template::{Function, Template};
use std::collections::BTreeSet;

/// The tables of a function: its environment names them.
fn tables_of<'a>(template: &'a Template, function: &Function) -> Vec<&'a dev::template::Table> {
    let named: BTreeSet<_> = function.environment.values().collect();
    template.tables.iter().filter(|table| named.contains(&table.name)).collect()
}

/// What a function's records say of this constant, such as the name of their partition key.
fn constants(function: &str, name: &str) -> BTreeSet<String> {
    let mark = format!("const {name}:");
    let sources = sources(&folder_of(function));
    let lines = sources.iter().flat_map(|source| source.code.lines()).filter(|line| line.contains(&mark));
    lines.flat_map(|line| strings(line).map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn a_record_has_the_keys_of_its_table() {
    let template = template();
    let mut missing = Complaints::default();
    for function in &template.functions {
        let tables = tables_of(&template, function);
        for (constant, role) in [("PARTITION_KEY", "HASH"), ("SORT_KEY", "RANGE")] {
            let indexes = tables.iter().flat_map(|table| &table.indexes).flat_map(|index| &index.key);
            let keys = tables.iter().flat_map(|table| &table.key).chain(indexes);
            let keys: Vec<_> = keys.filter(|key| key.role == role).collect();
            for named in constants(&function.name, constant) {
                missing.unless(keys.iter().any(|key| key.name == named), || {
                    let folder = folder_of(&function.name);
                    format!("{folder}: {constant} is {named}, but no table or index of it has this key")
                });
            }
        }
    }
    missing.report();
}

#[test]
fn ttl_looks_where_the_crate_says_until_when_a_row_is_kept() {
    let template = template();
    let mut missing = Complaints::default();
    for table in &template.tables {
        // Leases keep the end of their rows in `purgeAt`, and values that expire by themselves in `expiresAt`.
        let expected = match table.name.as_str() {
            "Leases" => "purgeAt",
            "IdempotencyRecords" => "expiresAt",
            _ => "_purgeAt",
        };
        missing.unless(table.ttl_attribute.as_deref() == Some(expected), || {
            format!("template.yaml: {} needs a TimeToLiveSpecification with AttributeName {expected}", table.name)
        });
    }
    missing.report();
}

#[test]
fn a_function_has_the_logical_id_that_follows_from_its_name() {
    let mut missing = Complaints::default();
    for function in template().functions {
        let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
        let expected = function.name.split('-').map(capital).collect::<String>() + "Function";
        missing.unless(function.logical_id == expected, || {
            format!("template.yaml: call {} {expected}; .ci/sam-local invokes it by that name", function.logical_id)
        });
    }
    missing.report();
}

#[test]
fn every_event_has_a_step_that_says_what_is_answered() {
    let steps = read(".ci/sam-local");
    let mut missing = Complaints::default();
    for file in events().keys() {
        let name = file.trim_start_matches("events/").trim_end_matches(".json");
        let step = functions().iter().any(|function| {
            let what = name.strip_prefix(&format!("{function}-"));
            what.is_some_and(|what| steps.contains(&format!(r#"("{function}", "{what}""#)))
        });
        missing.unless(step, || format!(".ci/sam-local: no step sends {file} and says what is answered"));
    }
    missing.report();
}

#[test]
fn every_function_runs_as_a_process_of_the_tests() {
    let text = read("tests/function.rs");
    let mut missing = Complaints::default();
    for name in functions() {
        missing.unless(text.contains(&format!("Some(\"{name}\")")), || {
            format!("tests/function.rs: add a line for {name}")
        });
    }
    missing.report();
}

#[test]
fn the_pages_know_every_route_and_every_setting() {
    let (http, operations) = (read("docs/http-api.md"), read("docs/operations.md"));
    let template = template();
    let mut missing = Complaints::default();
    for function in &template.functions {
        for route in routes_in_template(&template, &function.name) {
            missing.unless(has_row(&http, &route), || format!("docs/http-api.md: no table row has `{route}`"));
        }
        for variable in function.environment.keys() {
            missing.unless(has_row(&operations, variable), || {
                format!("docs/operations.md, Start-up settings: no row has `{variable}`")
            });
        }
    }
    missing.report();
}

#[test]
fn the_pages_name_only_files_that_exist() {
    let folders = [".ci/", ".github/", "dev/", "docs/", "events/", "functions/", "shared/", "tests/"];
    let mut missing = Complaints::default();
    for page in files(&root()).iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
        let page = relative(page);
        let text = read(&page);
        // Every second part of a text that is split at its backticks is code.
        for code in text.split('`').skip(1).step_by(2) {
            let is_path = folders.iter().any(|folder| code.starts_with(folder))
                && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
            let is_pattern = code.contains("NAME") || code == "dev/floor"; // the last one is a name of the past
            missing.unless(!is_path || is_pattern || root().join(code).exists(), || {
                format!("{page}: it names {code}, which does not exist")
            });
        }
    }
    missing.report();
}
