//! The constant `FIELDS` of a record: a typed field for each attribute.

use crate::names::Stored;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Field, GenericArgument, PathArguments, Type};

/// A field that serde stores.
pub(crate) struct StoredField<'a> {
    pub(crate) field: &'a Field,
    pub(crate) stored: Stored,
}

/// The constant, and the struct that is its type. The struct stands in a block, so that its name clashes with none.
pub(crate) fn expand(input: &DeriveInput, fields: &[StoredField<'_>]) -> TokenStream {
    let name = &input.ident;
    let (_, arguments, _) = input.generics.split_for_impl();
    let mut generics = input.generics.clone();
    if generics.type_params().next().is_some() {
        let bounds = generics.make_where_clause();
        bounds.predicates.push(syn::parse_quote!(#name #arguments: ::fencepost::__private::Stored));
        for StoredField { field: Field { ty, .. }, stored } in fields {
            if stored.writer.is_none() {
                bounds.predicates.push(syn::parse_quote!(#ty: ::fencepost::__private::Serialize));
            }
        }
    }
    let (parameters, _, bounds) = generics.split_for_impl();
    let record = quote!(#name #arguments);
    let declared = fields.iter().map(|StoredField { field, stored }| {
        let (visibility, ident, of) = (&field.vis, &field.ident, type_of(&record, field, stored));
        let doc = format!("The attribute `{}`.", stored.name);
        quote!(#[doc = #doc] #visibility #ident: #of)
    });
    let made = fields.iter().map(|StoredField { field, stored }| {
        let (ident, attribute, encode) = (&field.ident, &stored.name, encode(field, stored));
        quote!(#ident: ::fencepost::field::Field::with(#attribute, #encode))
    });
    quote! {
        const _: () = {
            #[allow(dead_code, missing_docs, missing_debug_implementations, clippy::type_complexity)]
            pub struct Fields #parameters #bounds { #(#declared,)* }

            #[automatically_derived]
            impl #parameters #name #arguments #bounds {
                /// The attributes of this record, from which edits are made: see `fencepost::field::Field`.
                #[allow(dead_code, clippy::declare_interior_mutable_const)]
                pub const FIELDS: Fields #arguments = Fields { #(#made,)* };
            }
        };
    }
}

/// The type of a field: `Field<Record, Value, Presence>`.
fn type_of(record: &TokenStream, field: &Field, stored: &Stored) -> TokenStream {
    let value = value_of(field, stored);
    let presence = if may_be_absent(field, stored) { quote!(Optional) } else { quote!(Required) };
    let presence = quote!(::fencepost::field::#presence);
    let presence = match stored.writer {
        Some(_) => quote!(::fencepost::field::Custom<#presence>),
        None => presence,
    };
    quote!(::fencepost::field::Field<#record, #value, #presence>)
}

/// The type of the values that an edit sets: that of the field, without its `Option`.
fn value_of<'a>(field: &'a Field, stored: &Stored) -> &'a Type {
    option(&field.ty).filter(|_| is_option(field, stored)).unwrap_or(&field.ty)
}

fn may_be_absent(field: &Field, stored: &Stored) -> bool {
    stored.has_default || is_option(field, stored)
}

/// Whether a missing attribute is read as `None`. One with a reader of its own and no default is refused by serde.
fn is_option(field: &Field, stored: &Stored) -> bool {
    option(&field.ty).is_some() && (stored.has_default || !stored.has_reader)
}

/// The function that writes a value of the field.
fn encode(field: &Field, stored: &Stored) -> TokenStream {
    let (whole, value) = (&field.ty, value_of(field, stored));
    let wrapped = if is_option(field, stored) { quote!(::core::option::Option::Some(value)) } else { quote!(value) };
    let skipped = if may_be_absent(field, stored) {
        quote!(::core::result::Result::Ok(::core::option::Option::None))
    } else {
        quote!(::core::result::Result::Err("serde skips this value, and does not read the record without it".into()))
    };
    let skips = stored.skips.as_ref().map(|skips| quote! { if #skips(&value) { return #skipped; } });
    let written = if let Some(writer) = &stored.writer {
        quote!(#writer(&value, ::fencepost::__private::Serializer))
    } else {
        quote!(::fencepost::__private::Serialize::serialize(&value, ::fencepost::__private::Serializer))
    };
    quote! {
        |value: #value| {
            let value: #whole = #wrapped;
            #skips
            ::fencepost::__private::stored(#written)
        }
    }
}

/// The type in an `Option`.
fn option(of: &Type) -> Option<&Type> {
    let Type::Path(path) = of else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}
