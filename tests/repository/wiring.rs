//! The parts of a function outside its folder: its tables, its logical id, its events in CI, its pages.

use super::files::{Complaints, files, has_row, read, relative, root, sources, strings, template};
use std::collections::BTreeSet;

/// The names that records and indexes have for a part of their key: in a constant, or in a derived record.
fn named(constant: &str, derived: &str) -> BTreeSet<String> {
    let (constant, derived) = (format!("const {constant}: "), format!("{derived} = \""));
    let sources = sources("functions/src");
    let lines = sources.iter().flat_map(|source| source.code.lines());
    let said = lines.filter_map(|line| match line.split_once("#[record(") {
        Some((_, options)) => options.split_once(&derived).map(|(_, rest)| rest.split('"').take(1).collect()),
        None => line.contains(&constant).then(|| strings(line).collect::<Vec<_>>()),
    });
    said.flatten().map(str::to_owned).collect()
}

#[test]
fn a_record_has_the_keys_of_its_table() {
    let template = template();
    let mut missing = Complaints::default();
    for (constant, derived, role) in [("PARTITION_KEY", "key", "HASH"), ("SORT_KEY", "sort", "RANGE")] {
        let indexes = template.tables.iter().flat_map(|table| &table.indexes).flat_map(|index| &index.key);
        let keys: Vec<_> = template.tables.iter().flat_map(|table| &table.key).chain(indexes).collect();
        for named in named(constant, derived) {
            missing.unless(keys.iter().any(|key| key.role == role && key.name == named), || {
                format!("functions/src: {constant} is {named}, but no table or index of template.yaml has this key")
            });
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
fn the_page_about_operations_has_every_setting_of_the_template() {
    let operations = read("docs/operations.md");
    let mut missing = Complaints::default();
    for variable in template().functions.iter().flat_map(|function| function.environment.keys()) {
        missing.unless(has_row(&operations, variable), || {
            format!("docs/operations.md, Start-up settings: no row has `{variable}`")
        });
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

#[test]
fn the_table_of_behaviours_names_only_files_that_exist() {
    let table = read("tests/main.rs");
    let mut missing = Complaints::default();
    for path in
        table.lines().filter(|line| line.starts_with("//! |")).flat_map(|line| line.split('`').skip(1).step_by(2))
    {
        let is_path = path.contains(".rs") || path.ends_with('/');
        missing.unless(!is_path || root().join("tests").join(path).exists(), || {
            format!("tests/main.rs: it names {path}, which does not exist")
        });
    }
    missing.report();
}
