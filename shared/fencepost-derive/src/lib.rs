//! The derive macro of `fencepost`, which exports it. Depend on `fencepost`, not on this crate.

mod fields;
mod names;
mod record;

use proc_macro::TokenStream;

/// Implements the trait `Record` for a struct with named fields, and gives the struct the constant `FIELDS`. The page of the
/// trait describes it.
#[proc_macro_derive(Record, attributes(record))]
pub fn derive_record(input: TokenStream) -> TokenStream {
    let expanded = syn::parse(input).and_then(|input| record::expand(&input));
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
