//! The implementation of `Record` for a struct, from its fields and from what `#[record(..)]` says.

use crate::fields::{self, StoredField};
use crate::names::Rules;
use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::{Attribute, Data, DeriveInput, Expr, Fields, LitStr, Result};

/// The values of `#[record(..)]`.
#[derive(Default)]
struct Options {
    key: Option<LitStr>,
    sort: Option<LitStr>,
    expires_at: Option<LitStr>,
    settings: Option<Expr>,
    holds: Option<Expr>,
}

impl Options {
    fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut options = Options::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("record")) {
            attribute.parse_nested_meta(|meta| match () {
                () if meta.path.is_ident("key") => once(&meta, &mut options.key),
                () if meta.path.is_ident("sort") => once(&meta, &mut options.sort),
                () if meta.path.is_ident("expires_at") => once(&meta, &mut options.expires_at),
                () if meta.path.is_ident("settings") => once(&meta, &mut options.settings),
                () if meta.path.is_ident("holds") => once(&meta, &mut options.holds),
                () => Err(meta.error("expected `key`, `sort`, `expires_at`, `settings` or `holds`")),
            })?;
        }
        Ok(options)
    }
}

fn once<T: Parse>(meta: &ParseNestedMeta<'_>, option: &mut Option<T>) -> Result<()> {
    match option.replace(meta.value()?.parse()?) {
        Some(_) => Err(meta.error("it is given twice")),
        None => Ok(()),
    }
}

/// Implements `Record` for the type.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let refused = || syn::Error::new_spanned(&input.ident, "only a struct with named fields can derive `Record`");
    let Data::Struct(data) = &input.data else { return Err(refused()) };
    let Fields::Named(fields) = &data.fields else { return Err(refused()) };
    let Options { key, sort, expires_at, settings, holds } = Options::of(&input.attrs)?;
    let key = key.ok_or_else(|| {
        syn::Error::new_spanned(&input.ident, "name the partition key of the table: `#[record(key = \"..\")]`")
    })?;
    let rules = Rules::of(&input.attrs)?;
    let (mut attributes, mut stored_fields) = (Vec::with_capacity(fields.named.len()), Vec::new());
    let mut key_fields = Vec::new();
    for field in &fields.named {
        if let Some(attribute) = field.attrs.iter().find(|attribute| attribute.path().is_ident("record")) {
            return Err(syn::Error::new_spanned(attribute, "`record` belongs on the struct, and names fields there"));
        }
        let Some(stored) = rules.stored(field)? else { continue };
        let attribute = stored.name.clone();
        if attributes.contains(&attribute) || key_fields.contains(&attribute) {
            return Err(syn::Error::new_spanned(field, format!("another field is stored as `{attribute}` too")));
        }
        if [Some(&key), sort.as_ref()].into_iter().flatten().any(|key| key.value() == attribute) {
            key_fields.push(attribute);
            continue;
        }
        attributes.push(attribute);
        stored_fields.push(StoredField { field, stored });
    }
    if let Some(name) = expires_at.as_ref().filter(|name| !attributes.contains(&name.value())) {
        let reason = format!("`{}` is not among the attributes: {}", name.value(), attributes.join(", "));
        return Err(syn::Error::new(name.span(), reason));
    }
    let key_fields =
        (!key_fields.is_empty()).then(|| quote!(const KEY_FIELDS: &'static [&'static str] = &[#(#key_fields),*];));
    let sort = sort.map(
        |name| quote!(const SORT_KEY: ::core::option::Option<&'static str> = ::core::option::Option::Some(#name);),
    );
    let expires_at = expires_at.map(
        |name| quote!(const EXPIRES_AT: ::core::option::Option<&'static str> = ::core::option::Option::Some(#name);),
    );
    let settings = settings.map(|settings| quote!(const SETTINGS: ::fencepost::Settings = #settings;));
    let holds = holds.map(
        |holds| quote!(const HOLDS: ::core::option::Option<::fencepost::Holds<Self>> = ::core::option::Option::Some(#holds);),
    );
    let fields = fields::expand(input, &stored_fields);
    let name = &input.ident;
    let (_, arguments, _) = input.generics.split_for_impl();
    let mut generics = input.generics.clone();
    if generics.type_params().next().is_some() {
        // Serde has bounds of its own for its traits. Those of the supertraits follow from them.
        let bounds: syn::WherePredicate = syn::parse_quote!(#name #arguments: ::fencepost::__private::Stored);
        generics.make_where_clause().predicates.push(bounds);
    }
    let (parameters, _, bounds) = generics.split_for_impl();
    let generic = &input.generics.params;
    let checked = generic.is_empty().then(|| quote!(const _: () = ::fencepost::__private::checked::<#name>();));
    Ok(quote! {
        #[automatically_derived]
        impl #parameters ::fencepost::Record for #name #arguments #bounds {
            const PARTITION_KEY: &'static str = #key;
            #sort
            const ATTRIBUTES: &'static [&'static str] = &[#(#attributes),*];
            #key_fields
            #expires_at
            #settings
            #holds
        }

        #checked
        #fields
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(source: &str) -> String {
        expand(&syn::parse_str(source).expect("Rust")).expect(source).to_string()
    }

    #[track_caller]
    fn refuses(source: &str, reason: &str) {
        let refused = expand(&syn::parse_str(source).expect("Rust")).expect_err(source).to_string();
        assert!(refused.contains(reason), "{source}: {refused}");
    }

    /// A struct with this field.
    #[track_caller]
    fn refuses_field(field: &str, reason: &str) {
        refuses(&format!("#[record(key = \"id\")] struct S {{ total: u64, {field} }}"), reason);
    }

    #[test]
    fn a_struct_says_all_that_it_was_told_and_nothing_more() {
        let bare = expanded("#[record(key = \"id\")] struct S { total: u64 }");
        assert!(bare.contains("PARTITION_KEY : & 'static str = \"id\"") && bare.contains("& [\"total\"]"), "{bare}");
        assert!(
            !["SORT_KEY", "KEY_FIELDS", "EXPIRES_AT", "SETTINGS"].iter().any(|constant| bare.contains(constant)),
            "{bare}"
        );
        let full = expanded(
            "#[record(key = \"id\", sort = \"line\")] #[record(expires_at = \"end\", settings = OURS.first_version(2))]
             struct S<T: Clone> where T: Copy { end: u64, of: T }",
        );
        assert!(!bare.contains("where"), "{bare}");
        for part in [
            "Some (\"line\")",
            "Some (\"end\")",
            "OURS . first_version (2)",
            "impl < T : Clone >",
            "T : Copy",
            "S < T > : :: fencepost",
        ] {
            assert!(full.contains(part), "{part}: {full}");
        }
    }

    #[test]
    fn only_a_struct_with_named_fields_derives_it() {
        for shape in ["enum S { A { total: u64 } }", "struct S(u64);", "struct S;", "union S { a: u64 }"] {
            refuses(&format!("#[record(key = \"id\")] {shape}"), "only a struct with named fields");
        }
    }

    #[test]
    fn options_are_named_and_given_once() {
        refuses("struct S { total: u64 }", "name the partition key");
        refuses("#[record(sort = \"line\")] struct S { total: u64 }", "name the partition key");
        refuses("#[record(key = \"id\", key = \"id\")] struct S { total: u64 }", "given twice");
        refuses("#[record(key = \"id\", keys = \"id\")] struct S { total: u64 }", "expected `key`");
        refuses("#[record(key = 1)] struct S { total: u64 }", "expected string literal");
    }

    #[test]
    fn what_expires_is_an_attribute() {
        let with = |end: &str| {
            format!(
                "#[record(key = \"id\", expires_at = \"{end}\")] #[serde(rename_all = \"camelCase\")] struct S {{ ends_at: u64 }}"
            )
        };
        assert!(expanded(&with("endsAt")).contains("Some (\"endsAt\")"));
        refuses(&with("ends_at"), "`ends_at` is not among the attributes: endsAt");
    }

    #[test]
    fn a_key_may_be_a_field_and_no_two_fields_share_an_attribute() {
        let keyed = expanded("#[record(key = \"id\", sort = \"line\")] struct S { line: u64, id: String, total: u64 }");
        assert!(keyed.contains("& [\"total\"]") && keyed.contains("& [\"line\" , \"id\"]"), "{keyed}");
        refuses_field("id: String, #[serde(rename = \"id\")] other: String", "another field is stored as `id` too");
        refuses_field("#[record(expires_at = \"x\")] x: u64", "`record` belongs on the struct");
        refuses_field("#[serde(rename = \"total\")] other: u64", "another field is stored as `total` too");
    }

    #[test]
    fn a_field_has_one_name() {
        refuses_field(
            "#[serde(rename(serialize = \"a\", deserialize = \"b\"))] x: u64",
            "written as `a` and read as `b`",
        );
        refuses_field("#[serde(rename(serialize = \"a\"))] x: u64", "the field `x` is written as `a` and read as `x`");
        refuses(
            "#[record(key = \"id\")] #[serde(rename_all(serialize = \"camelCase\"))] struct S { a_b: u64 }",
            "written as `aB` and read as `a_b`",
        );
        refuses(
            "#[record(key = \"id\")] #[serde(rename_all = \"Title\")] struct S { a: u64 }",
            "serde has no such rule",
        );
    }

    #[test]
    fn a_field_is_stored_and_read_or_neither() {
        refuses_field("#[serde(skip_serializing)] x: u64", "read, and serde's `skip_serializing` never stores it");
        refuses_field("#[serde(skip_deserializing)] x: u64", "stored, and serde's `skip_deserializing` never reads it");
        for both in ["skip", "skip_serializing, skip_deserializing"] {
            let source = format!("#[record(key = \"id\")] struct S {{ total: u64, #[serde({both})] x: u64 }}");
            assert!(!expanded(&source).contains("\"x\""), "{both}");
        }
    }

    #[test]
    fn what_changes_the_attributes_otherwise_is_refused_by_name() {
        let by_hand = "is not supported: implement `Record` by hand";
        for (attribute, name) in
            [("flatten", "flatten"), ("alias = \"old\"", "alias"), ("getter = \"f\"", "getter"), ("borrow", "borrow")]
        {
            refuses_field(
                &format!("#[serde(default, {attribute})] x: u64"),
                &format!("serde's `{name}` on the field `x` {by_hand}"),
            );
        }
        for (attribute, name) in [
            ("tag = \"type\"", "tag"),
            ("transparent", "transparent"),
            ("from = \"Other\"", "from"),
            ("try_from = \"Other\"", "try_from"),
            ("into = \"Other\"", "into"),
            ("remote = \"Other\"", "remote"),
        ] {
            let source = format!("#[record(key = \"id\")] #[serde({attribute})] struct S {{ total: u64 }}");
            refuses(&source, &format!("serde's `{name}` on the struct {by_hand}"));
        }
    }
}
