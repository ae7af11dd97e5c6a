//! The constant `FIELDS` of a record: a typed field for each attribute.

use crate::names::{Default, Stored};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Field, GenericArgument, PathArguments, Type};

/// A field that serde stores.
pub(crate) struct StoredField<'a> {
    pub(crate) field: &'a Field,
    pub(crate) stored: Stored,
}

/// The constant, and the struct that is its type. The struct stands in a block, so that its name is seen only there.
pub(crate) fn expand(input: &DeriveInput, fields: &[StoredField<'_>]) -> TokenStream {
    let name = &input.ident;
    let (_, arguments, _) = input.generics.split_for_impl();
    let mut generics = input.generics.clone();
    if generics.type_params().next().is_some() {
        let bounds = generics.make_where_clause();
        bounds.predicates.push(syn::parse_quote!(#name #arguments: ::fencepost::__private::Stored));
        for StoredField { field: Field { ty, .. }, stored } in fields {
            match &stored.default {
                Some(Default::OfType) => bounds.predicates.push(syn::parse_quote!(#ty: ::core::default::Default)),
                Some(Default::OfStruct(None)) => {
                    bounds.predicates.push(syn::parse_quote!(#name #arguments: ::core::default::Default));
                }
                _ => {}
            }
            if stored.writer.is_none() || stored.reader.is_none() {
                bounds.predicates.push(syn::parse_quote!(#ty: ::fencepost::__private::Stored));
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
        let (ident, attribute, derived) = (&field.ident, &stored.name, derived(&record, field, stored));
        quote!(#ident: ::fencepost::field::Field::derived(#attribute, #derived))
    });
    quote! {
        const _: () = {
            #[allow(dead_code, missing_docs, missing_debug_implementations, clippy::type_complexity)]
            pub struct __FencepostFields #parameters #bounds {
                #(#declared,)*
                __record: ::core::marker::PhantomData<fn() -> #record>,
            }

            #[automatically_derived]
            impl #parameters #name #arguments #bounds {
                /// The attributes of this record, from which edits are made: see `fencepost::field::Field`.
                #[allow(dead_code, clippy::declare_interior_mutable_const)]
                pub const FIELDS: __FencepostFields #arguments =
                    __FencepostFields { #(#made,)* __record: ::core::marker::PhantomData };
            }
        };
    }
}

/// The type of a field: `Field<Record, Value, Presence>`.
fn type_of(record: &TokenStream, field: &Field, stored: &Stored) -> TokenStream {
    let value = value_of(field, stored);
    let presence = match (&stored.default, is_option(field, stored)) {
        (_, true) => quote!(Optional),
        (Some(_), false) => quote!(Defaulted),
        (None, false) => quote!(Required),
    };
    let presence = quote!(::fencepost::field::#presence);
    let is_custom = stored.writer.is_some() || stored.reader.is_some();
    let presence = if is_custom { quote!(::fencepost::field::Custom<#presence>) } else { presence };
    quote!(::fencepost::field::Field<#record, #value, #presence>)
}

/// The type of the values that an edit sets: that of the field, without its `Option`.
fn value_of<'a>(field: &'a Field, stored: &Stored) -> &'a Type {
    option(&field.ty).filter(|_| is_option(field, stored)).unwrap_or(&field.ty)
}

/// Whether the values are those in an `Option`. Serde reads no record without one that has a reader of its own and no default.
fn is_option(field: &Field, stored: &Stored) -> bool {
    option(&field.ty).is_some() && (stored.default.is_some() || stored.reader.is_none())
}

/// What a field is made of: the function that writes a value, the one that makes the attribute of the default, and the one
/// that makes that of `None`.
fn derived(record: &TokenStream, field: &Field, stored: &Stored) -> TokenStream {
    let (whole, value) = (&field.ty, value_of(field, stored));
    let private = quote!(::fencepost::__private);
    let [none, some] = [quote!(::core::option::Option::None), quote!(::core::option::Option::Some)];
    let [write, read] = [
        stored.writer.as_ref().map_or_else(|| quote!(#private::Serialize::serialize), |writer| quote!(#writer)),
        stored.reader.as_ref().map_or_else(|| quote!(#private::Deserialize::deserialize), |reader| quote!(#reader)),
    ];
    let write = |value: TokenStream| quote!(#private::written(#write(#value, #private::Serializer)));
    let default = match (&stored.default, is_option(field, stored)) {
        (None, true) => Some(none.clone()),
        (None, false) => None,
        (Some(Default::OfType), _) => Some(quote!(::core::default::Default::default())),
        (Some(Default::By(path)), _) => Some(quote!(#path())),
        (Some(Default::OfStruct(path)), _) => {
            let (ident, whole) = (&field.ident, path.as_ref().map(|path| quote!(#path())));
            let whole = whole.unwrap_or_else(|| quote!(<#record as ::core::default::Default>::default()));
            Some(quote!(#whole.#ident))
        }
    };
    let make = |value: &TokenStream| {
        let written = write(quote!(&value));
        quote!(#some(|| { let value: #whole = #value; #written }))
    };
    let (make_default, make_none) = (default.as_ref().map(make), is_option(field, stored).then(|| make(&none)));
    let (make_default, make_none) = (make_default.unwrap_or(none.clone()), make_none.unwrap_or(none.clone()));
    let wrapped = if is_option(field, stored) { quote!(#some(value)) } else { quote!(value) };
    let skips = stored.skips.as_ref().map_or_else(|| quote!(false), |skips| quote!(#skips(&value)));
    let refused = |reason: &str| quote!(return ::core::result::Result::Err(#reason.into()));
    let skipped = default.unwrap_or_else(|| refused("serde skips this value, and does not read the record without it"));
    let lost = is_option(field, stored).then(|| {
        let refused = refused("it would be read back as None");
        quote!(if again.is_none() { #refused; })
    });
    let (written, again) = (write(quote!(&value)), write(quote!(&again)));
    quote! {
        |value: #value| {
            let value: #whole = #wrapped;
            let is_skipped: bool = #skips;
            let written = #written?;
            let again: #whole =
                if is_skipped { #skipped } else { #private::read(#read(#private::deserializer(&written)))? };
            #lost
            #private::check_same(&written, &#again?)?;
            ::core::result::Result::Ok(#private::Written { value: written, is_skipped })
        },
        #make_default,
        #make_none
    }
}

/// The type in an `Option`.
fn option(of: &Type) -> Option<&Type> {
    let path = match of {
        // The type of a field that a macro by example has made.
        Type::Group(group) => return option(&group.elem),
        Type::Path(path) => path,
        _ => return None,
    };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}
