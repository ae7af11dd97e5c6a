//! Which file names which: data walks through the crate in one direction.

use super::files::{Complaints, Source, binaries, sources, words};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// The layers of `shared/src`: a file names only files of its own row or of rows above it in this list.
const LAYERS: &[&[&str]] = &[
    &["throttling"],
    &["call", "clock", "error", "fencing_token", "json", "layout", "names", "number", "retry", "timestamp", "version"],
    &["protocol"],
    &["store"],
    &["table"],
    &["listing", "transact"],
    &["idempotency"],
    &["lease", "lww", "maintenance"],
    &["http"],
    &["lambda"],
    &["testing"],
];

/// A file as a module: `["table", "key"]` for `table/key.rs`.
type Module = Vec<String>;

/// Which file names which, by module. The root (`lib.rs`, `main.rs`) only lists the others and is left out.
#[derive(Default)]
struct Imports {
    files: BTreeMap<Module, String>,
    named: BTreeMap<Module, BTreeSet<Module>>,
    /// Names taken from the root, which only re-exports.
    from_root: Vec<String>,
}

impl Imports {
    fn of(folder: &str) -> Self {
        let sources: Vec<_> = sources(folder).into_iter().filter(|source| !source.path.ends_with("tests.rs")).collect();
        let mut imports = Imports::default();
        for source in &sources {
            imports.files.insert(module_of(folder, source), source.path.clone());
        }
        for source in &sources {
            let own = module_of(folder, source);
            if own.is_empty() {
                continue;
            }
            let mut paths = Paths::default();
            paths.visit_file(&syn::parse_file(&source.text).unwrap_or_else(|error| panic!("{}: {error}", source.path)));
            for path in paths.0 {
                imports.resolve(&own, &path);
            }
        }
        imports
    }

    /// Notes the file that this path leads to, seen from the module `own`.
    fn resolve(&mut self, own: &Module, path: &[String]) {
        let mut at = own.clone();
        let mut rest = path;
        match path.first().map(String::as_str) {
            Some("crate") => {
                at.clear();
                rest = &path[1..];
            }
            Some("self") => rest = &path[1..],
            Some("super") => {
                while rest.first().is_some_and(|name| name == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            // A child, or another crate.
            Some(name) if !self.files.contains_key(&[own.as_slice(), &[name.to_owned()]].concat()) => return,
            _ => {}
        }
        while let Some(name) = rest.first() {
            at.push(name.clone());
            if !self.files.contains_key(&at) {
                at.pop();
                break;
            }
            rest = &rest[1..];
        }
        if at.is_empty() {
            self.from_root.push(format!(
                "{}: it names {}; name the file that has it",
                self.files[own],
                path.join("::")
            ));
        } else if at != *own {
            self.named.entry(own.clone()).or_default().insert(at);
        }
    }

    /// Every module that can be reached from this one.
    fn reached_from(&self, start: &Module) -> BTreeSet<Module> {
        let (mut reached, mut left) = (BTreeSet::new(), vec![start.clone()]);
        while let Some(module) = left.pop() {
            for next in self.named.get(&module).into_iter().flatten() {
                if reached.insert(next.clone()) {
                    left.push(next.clone());
                }
            }
        }
        reached
    }

    /// Files that lead back to themselves.
    fn circles(&self) -> Vec<String> {
        let leads_back = |module: &&Module| self.reached_from(module).contains(*module);
        let circle: Vec<_> = self.files.keys().filter(leads_back).collect();
        let within = |module: &Module| {
            let named = self.named[module].iter().filter(|next| circle.contains(next));
            named.map(|next| self.files[next].clone()).collect::<Vec<_>>().join(", ")
        };
        circle.iter().map(|module| format!("{} is in a circle by {}", self.files[*module], within(module))).collect()
    }
}

fn module_of(folder: &str, source: &Source) -> Module {
    let inside = source.path.strip_prefix(folder).unwrap_or(&source.path).trim_start_matches('/');
    let mut module: Module = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if ["mod", "lib", "main"].iter().any(|root| module.last().is_some_and(|last| last == root)) {
        module.pop();
    }
    module
}

/// The paths that a file names outside its unit tests, each with its segments.
#[derive(Default)]
struct Paths(Vec<Vec<String>>);

impl Paths {
    fn take(&mut self, tree: &syn::UseTree, before: &[String]) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.take(&path.tree, &with(&path.ident)),
            syn::UseTree::Name(name) => self.0.push(with(&name.ident)),
            syn::UseTree::Rename(rename) => self.0.push(with(&rename.ident)),
            syn::UseTree::Glob(_) => self.0.push(before.to_vec()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.take(tree, before)),
        }
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        let is_test = |attribute: &syn::Attribute| {
            attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
        };
        if !module.attrs.iter().any(is_test) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.take(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let segments: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.first().is_some_and(|first| ["crate", "self", "super"].contains(&first.as_str()))
            && segments.len() > 1
        {
            self.0.push(segments);
        }
        visit::visit_path(self, path);
    }
}

#[test]
fn no_file_of_shared_names_a_file_that_is_built_on_it_and_none_leads_back_to_itself() {
    let layer = |module: &Module| LAYERS.iter().position(|row| row.contains(&module[0].as_str()));
    let imports = Imports::of("shared/src");
    let mut found = Complaints::default();
    assert!(imports.named.len() > 20, "the paths of {} files are resolved", imports.named.len());
    imports.from_root.iter().cloned().chain(imports.circles()).for_each(|complaint| found.push(complaint));
    for (own, named) in &imports.named {
        let Some(row) = layer(own) else {
            found.push(format!("{}: say in tests/repository/imports.rs which layer it is in", imports.files[own]));
            continue;
        };
        for other in named {
            let (path, other_path) = (&imports.files[own], &imports.files[other]);
            found.unless(layer(other).is_some_and(|other| other <= row), || {
                format!("{path}: it names {other_path}, which is built on it")
            });
        }
    }
    found.report();
}

/// A binary has the names of its module, and `lib.rs` names all functions.
#[test]
fn a_function_names_no_other_function_and_a_binary_only_its_own() {
    let functions: BTreeSet<_> = binaries().iter().map(|name| name.replace('-', "_")).collect();
    let imports = Imports::of("functions/src");
    let mut found = Complaints::default();
    imports.from_root.iter().for_each(|complaint| found.push(complaint.clone()));
    for (own, named) in imports.named.iter().filter(|(own, _)| functions.contains(&own[0])) {
        for other in named.iter().filter(|other| other[0] != own[0] && functions.contains(&other[0])) {
            let (path, other) = (&imports.files[own], &imports.files[other]);
            found.push(format!("{path}: it names {other}; what two functions need goes into a file beside lib.rs"));
        }
    }
    for source in sources("functions/src/bin") {
        let own = module_of("functions/src/bin", &source).concat().replace('-', "_");
        for (number, line) in source.lines() {
            for named in line.split("functions::").skip(1) {
                let fine = words(named).next().is_some_and(|first| first == own || first == "function");
                found.unless(fine, || {
                    format!("{}:{number}: name only functions::{own} and functions::function", source.path)
                });
            }
        }
    }
    found.report();
}
