//! Which file names which: data walks through each package in one direction.

use super::files::{Complaints, Source, binaries, files, relative, root, sources, words};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use syn::visit::{self, Visit};

/// Where circles are left for now.
const LEFT: [&str; 1] = ["tests/histories/mixed/"];

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
        let others: Vec<_> = packages().into_iter().filter(|other| other.starts_with(&format!("{folder}/"))).collect();
        let is_own = |source: &Source| {
            !source.path.ends_with("tests.rs")
                && !others.iter().any(|other| source.path.starts_with(&format!("{other}/")))
        };
        let sources: Vec<_> = sources(folder).into_iter().filter(is_own).collect();
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

    /// Files and folders that lead back to themselves, each among its neighbours in one folder. A circle of files goes through
    /// such neighbours too, in the folder that has all of them.
    fn circles(&self, folder: &str) -> Vec<String> {
        let mut named = BTreeMap::<Module, BTreeSet<Module>>::new();
        for (own, others) in &self.named {
            for other in others {
                let shared = own.iter().zip(other).take_while(|(own, other)| own == other).count();
                // The file of a folder itself (`mod.rs`) is the neighbour without a name.
                let neighbour =
                    |module: &Module| [&module[..shared], &[module.get(shared).cloned().unwrap_or_default()]].concat();
                named.entry(neighbour(own)).or_default().insert(neighbour(other));
            }
        }
        let in_circle: Vec<_> = named.keys().filter(|one| reached_from(&named, one).contains(*one)).collect();
        let path = |module: &Module| format!("{folder}/{}", module.join("/"));
        let within = |module: &Module| {
            let next = named[module].iter().filter(|next| in_circle.contains(next));
            next.map(path).collect::<Vec<_>>().join(", ")
        };
        let found = in_circle.iter().filter(|module| !LEFT.iter().any(|left| path(module).starts_with(left)));
        found.map(|module| format!("{} is in a circle by {}", path(module), within(module))).collect()
    }
}

/// Every module that can be reached from this one.
fn reached_from(named: &BTreeMap<Module, BTreeSet<Module>>, start: &Module) -> BTreeSet<Module> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![start]);
    while let Some(module) = left.pop() {
        for next in named.get(module).into_iter().flatten() {
            if reached.insert(next.clone()) {
                left.push(next);
            }
        }
    }
    reached
}

/// The folders with the sources of each package.
fn packages() -> BTreeSet<String> {
    let manifests = files(&root()).into_iter().filter(|path| path.file_name().is_some_and(|name| name == "Cargo.toml"));
    let folder = |manifest: PathBuf| {
        let package = manifest.parent().filter(|folder| *folder != root())?;
        let src = package.join("src");
        Some(relative(if src.exists() { &src } else { package }))
    };
    manifests.filter_map(folder).collect()
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

/// What is built on something is never named by it: of two files or folders side by side, one names the other and is not named
/// back, whichever way round. So data walks in one direction.
#[test]
fn no_file_and_no_folder_of_any_package_leads_back_to_itself() {
    let mut found = Complaints::default();
    let packages = packages();
    assert!(packages.len() > 10 && packages.contains("shared/src"), "{packages:?}");
    for package in &packages {
        let imports = Imports::of(package);
        imports.circles(package).into_iter().for_each(|complaint| found.push(complaint));
        if package == "shared/src" {
            assert!(imports.named.len() > 20, "the paths of {} files are resolved", imports.named.len());
            imports.from_root.into_iter().for_each(|complaint| found.push(complaint));
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
