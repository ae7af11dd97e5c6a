//! What serde says of fields: their names, and how it writes them.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, ExprPath, Field, LitStr, Result, Token, parenthesized};

/// Attributes of serde that leave the names of the attributes alone.
const OF_A_STRUCT: &[&str] = &["bound", "crate", "deny_unknown_fields", "expecting", "rename"];
const OF_A_FIELD: &[&str] = &["bound"];

/// What serde says of a struct: the rules of `rename_all`, one for what is written and one for what is read, and whether
/// every field has a default.
#[derive(Default)]
pub(crate) struct Rules {
    renames: [Option<LitStr>; 2],
    /// What a missing attribute is read as, if the struct says so.
    default: Option<Default>,
}

/// What serde reads where an attribute is missing.
#[derive(Clone)]
pub(crate) enum Default {
    /// The default of the type of the field.
    OfType,
    /// What this function makes.
    By(ExprPath),
    /// The field of the default of the struct, which this function makes if there is one.
    OfStruct(Option<ExprPath>),
}

/// How serde stores a field.
pub(crate) struct Stored {
    /// The attribute.
    pub(crate) name: String,
    /// What a missing attribute is read as.
    pub(crate) default: Option<Default>,
    /// The functions that write and read the value, if they are not those of its type.
    pub(crate) writer: Option<ExprPath>,
    pub(crate) reader: Option<ExprPath>,
    /// The function that says which values are not stored.
    pub(crate) skips: Option<ExprPath>,
}

impl Rules {
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut rules = Rules::default();
        each_of_serde(attributes, |meta| match &*name_of(meta) {
            "rename_all" => two(meta, &mut rules.renames),
            "default" => {
                rules.default = Some(Default::OfStruct(optional_path(meta)?));
                Ok(())
            }
            name if OF_A_STRUCT.contains(&name) => skip_value(meta),
            name => Err(by_hand(meta, name, "the struct")),
        })?;
        for rule in rules.renames.iter().flatten() {
            renamed("", &rule.value()).ok_or_else(|| syn::Error::new(rule.span(), "serde has no such rule"))?;
        }
        Ok(rules)
    }

    /// How a field is stored. `None` if serde skips the field.
    pub(crate) fn stored(&self, field: &Field) -> Result<Option<Stored>> {
        let Some(ident) = &field.ident else { return Ok(None) };
        let ident = ident.unraw().to_string();
        let (mut names, mut skips) = ([None, None], [false, false]);
        let (name, default) = (String::new(), self.default.clone());
        let mut stored = Stored { name, default, writer: None, reader: None, skips: None };
        each_of_serde(&field.attrs, |meta| match &*name_of(meta) {
            "rename" => two(meta, &mut names),
            name @ ("skip" | "skip_serializing" | "skip_deserializing") => {
                skips[0] |= name != "skip_deserializing";
                skips[1] |= name != "skip_serializing";
                Ok(())
            }
            "default" => {
                stored.default = Some(optional_path(meta)?.map_or(Default::OfType, Default::By));
                Ok(())
            }
            "with" => {
                let module = path_of(meta)?;
                let [writer, reader] = ["serialize", "deserialize"].map(|name| {
                    let mut function = module.clone();
                    function.path.segments.push(syn::Ident::new(name, Span::call_site()).into());
                    function
                });
                (stored.writer, stored.reader) = (Some(writer), Some(reader));
                Ok(())
            }
            "serialize_with" => path_of(meta).map(|path| stored.writer = Some(path)),
            "deserialize_with" => path_of(meta).map(|path| stored.reader = Some(path)),
            "skip_serializing_if" => path_of(meta).map(|path| stored.skips = Some(path)),
            name if OF_A_FIELD.contains(&name) => skip_value(meta),
            name => Err(by_hand(meta, name, &format!("the field `{ident}`"))),
        })?;
        let half = |kept: &str| {
            let reason = format!("the field `{ident}` is {kept}: skip both with serde's `skip`, or none");
            Err(syn::Error::new_spanned(field, reason))
        };
        match skips {
            [true, true] => return Ok(None),
            [true, false] => return half("read, and serde's `skip_serializing` never stores it"),
            [false, true] => return half("stored, and serde's `skip_deserializing` never reads it"),
            [false, false] => {}
        }
        let [written, read] = [0, 1].map(|side| match (&names[side], &self.renames[side]) {
            (Some(name), _) => name.value(),
            (None, Some(rule)) => renamed(&ident, &rule.value()).unwrap_or_default(),
            (None, None) => ident.clone(),
        });
        if written != read {
            let reason =
                format!("the field `{ident}` is written as `{written}` and read as `{read}`: give it one name");
            return Err(syn::Error::new_spanned(field, reason));
        }
        Ok(Some(Stored { name: written, ..stored }))
    }
}

/// Reads `= "path"`.
fn path_of(meta: &ParseNestedMeta<'_>) -> Result<ExprPath> {
    meta.value()?.parse::<LitStr>()?.parse()
}

fn optional_path(meta: &ParseNestedMeta<'_>) -> Result<Option<ExprPath>> {
    if meta.input.peek(Token![=]) { path_of(meta).map(Some) } else { Ok(None) }
}

fn each_of_serde(attributes: &[Attribute], mut each: impl FnMut(&ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    let mut of_serde = attributes.iter().filter(|attribute| attribute.path().is_ident("serde"));
    of_serde.try_for_each(|attribute| attribute.parse_nested_meta(|meta| each(&meta)))
}

fn name_of(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

/// Reads `= "name"`, or `(serialize = "name", deserialize = "name")`.
fn two(meta: &ParseNestedMeta<'_>, [written, read]: &mut [Option<LitStr>; 2]) -> Result<()> {
    if meta.input.peek(Token![=]) {
        let name: LitStr = meta.value()?.parse()?;
        (*written, *read) = (Some(name.clone()), Some(name));
        return Ok(());
    }
    meta.parse_nested_meta(|meta| {
        let side = if meta.path.is_ident("serialize") { &mut *written } else { &mut *read };
        *side = Some(meta.value()?.parse()?);
        Ok(())
    })
}

fn skip_value(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<Expr>()?;
    } else if meta.input.peek(syn::token::Paren) {
        let inner;
        parenthesized!(inner in meta.input);
        inner.parse::<proc_macro2::TokenStream>()?;
    }
    Ok(())
}

fn by_hand(meta: &ParseNestedMeta<'_>, name: &str, place: &str) -> syn::Error {
    meta.error(format!("serde's `{name}` on {place} is not supported: implement `Record` by hand"))
}

/// The name of a field under a rule of serde. `None` if serde has no such rule.
fn renamed(field: &str, rule: &str) -> Option<String> {
    let pascal = || {
        let words = field.split('_').map(|word| match word.split_at_checked(1) {
            Some((first, rest)) => first.to_ascii_uppercase() + rest,
            None => word.to_owned(),
        });
        words.collect::<String>()
    };
    Some(match rule {
        "lowercase" | "snake_case" => field.to_owned(),
        "UPPERCASE" | "SCREAMING_SNAKE_CASE" => field.to_ascii_uppercase(),
        "PascalCase" => pascal(),
        "camelCase" => match pascal().split_at_checked(1) {
            Some((first, rest)) => first.to_ascii_lowercase() + rest,
            None => pascal(),
        },
        "kebab-case" => field.replace('_', "-"),
        "SCREAMING-KEBAB-CASE" => field.to_ascii_uppercase().replace('_', "-"),
        _ => return None,
    })
}
