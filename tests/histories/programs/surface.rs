//! The public surface that programs have to play: every operation and option, as the sources declare them.

use super::catalog::KINDS;
use dev::workspace;
use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::sync::LazyLock;
use syn::{Expr, ImplItem, Item, ItemImpl, Type, Visibility};

/// The types with operations and options, and where they are in `shared`.
const SOURCES: &[(&str, &[&str])] = &[
    ("src/store.rs", &["Store"]),
    ("src/table/open.rs", &["Store"]),
    ("src/table/handle.rs", &["Table"]),
    ("src/table/update.rs", &["Table"]),
    ("src/table/editing.rs", &["Table"]),
    ("src/table/settle.rs", &["Table"]),
    ("src/table/edit.rs", &["Edit", "Condition"]),
    ("src/table/field.rs", &["Field", "Edit"]),
    ("src/transact/reads.rs", &["Reads"]),
    ("src/transact/attempt.rs", &["Attempt"]),
    ("src/transact/transactions.rs", &["Store"]),
    ("src/idempotency.rs", &["Store", "Idempotency", "IdempotencyClaim"]),
    ("src/listing/query.rs", &["Table", "Query", "Sort"]),
    ("src/listing/pages.rs", &["Query", "Pages"]),
    ("src/lease/leases.rs", &["Store", "Leases"]),
    ("src/lease/held.rs", &["Leases", "Held"]),
    ("src/lease/work.rs", &["Leases"]),
    ("src/lease/wait.rs", &["Leases"]),
    ("src/lease/renew.rs", &["Leases"]),
    ("src/lease/terms.rs", &["LeaseTerms"]),
    ("src/lww.rs", &["Store", "LwwTable"]),
    ("src/settings.rs", &["Settings", "WithoutTtl"]),
    ("fencepost-core/src/format/names.rs", &["Names"]),
];

/// What only shows a part of its value.
const SHOWN: &[&str] = &["clock", "clock_skew", "free_in", "length", "now", "policy", "remaining", "store", "token"];

/// What the harness of all histories plays, what only the derive macro calls (see [`super::fields`]), and what histories of
/// orders with holds play.
const OF_THE_HARNESS: &[&str] = &[
    "Store::new",
    "Store::with_clock",
    "Store::with_policy",
    "Store::with_rng",
    "Field::derived",
    "Attempt::held",
    "Settings::deciding",
    "Table::get_with_held",
    "Table::held_for",
    "Table::settle",
    "Table::settle_all",
];

/// All operations and options.
pub static ALL: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    let mut all = BTreeSet::new();
    for (file, types) in SOURCES {
        let source =
            read_to_string(workspace().join("shared").join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        for item in syn::parse_file(&source).expect("Rust").items {
            let Item::Impl(of @ ItemImpl { trait_: None, .. }) = item else { continue };
            let Type::Path(path) = &*of.self_ty else { continue };
            let name = path.path.segments.last().expect("a name").ident.to_string();
            for method in of.items.iter().filter(|_| types.contains(&&*name)) {
                let ImplItem::Fn(method) = method else { continue };
                let method_name = method.sig.ident.to_string();
                if matches!(method.vis, Visibility::Public(_)) && !SHOWN.contains(&&*method_name) {
                    all.insert(format!("{name}::{method_name}"));
                }
            }
        }
    }
    all.extend(attributes_of_the_derive());
    all.into_iter().filter(|name| !OF_THE_HARNESS.contains(&&**name)).map(|name| &*name.leak()).collect()
});

/// The attributes of serde and of `Record` that the derive takes.
fn attributes_of_the_derive() -> Vec<String> {
    let names = workspace().join("shared/fencepost-derive/src/names.rs");
    let names = syn::parse_file(&read_to_string(names).expect("the derive")).expect("Rust");
    let lists =
        names.items.into_iter().filter_map(|item| if let Item::Const(list) = item { Some(*list.expr) } else { None });
    let mut found: Vec<_> =
        ["rename_all", "rename", "skip", "key", "sort", "expires_at", "settings", "holds"].map(str::to_owned).into();
    for list in lists {
        let Expr::Reference(list) = list else { continue };
        let Expr::Array(list) = *list.expr else { continue };
        for name in list.elems {
            if let Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(name), .. }) = name {
                found.push(name.value());
            }
        }
    }
    found.into_iter().map(|name| format!("#[{name}]")).collect()
}

/// The declarations of the types, one for each kind, with the names that they rename to.
static DECLARED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let source = include_str!("records.rs");
    let renamed = source.split_once("const RENAMED").and_then(|(_, rest)| rest.split_once(';')).expect("the names").0;
    let of = |kind: &&dyn super::catalog::Kind| {
        let name = format!("{} \"{}\"", kind.table().trim_start_matches("Play"), kind.key().1);
        let block = source.split("    #[record(").find(|block| block.contains(&name)).unwrap_or_default();
        format!("record({}", block.replace("RENAMED", renamed))
    };
    KINDS.iter().map(of).collect()
});

/// The options of a kind: its settings, and the attributes of its type.
pub fn options_of(kind: usize) -> impl Iterator<Item = &'static str> {
    let declared = &DECLARED[kind];
    ALL.iter().copied().filter(move |name| {
        let word = name.trim_start_matches("#[").trim_end_matches(']');
        let word = word.rsplit("::").next().unwrap_or(word);
        let is_option = name.starts_with("#[")
            || name.starts_with("Settings::")
            || name.starts_with("WithoutTtl::")
            || name.starts_with("Names::");
        let is_word = |(at, _): (usize, &str)| {
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
            let after = declared[at + word.len()..].chars().next();
            !declared[..at].ends_with(is_part) && after.is_some_and(|after| "( =,)".contains(after))
        };
        is_option && declared.match_indices(word).any(is_word)
    })
}
