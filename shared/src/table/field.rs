//! [`Field`]: an attribute of a record, with the type of its values. Edits and conditions are made from fields.

use super::edit::{Condition, Edit};
use super::record::Record;
use crate::error::Source;
use crate::timestamp::Timestamp;
use fencepost_core::condition::{Comparison, Condition as RawCondition, Demanded};
use fencepost_core::edit::is_likely;
use fencepost_core::format::value::{LAST_END, first_difference, settle_all};
use fencepost_core::{AttributeValue, Attributes, Bounds, InvalidValue, Number};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::num::{NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64};
use std::ops::RangeInclusive;

/// The attribute of a value, and whether serde skips it.
#[doc(hidden)]
pub struct Written {
    pub value: AttributeValue,
    pub is_skipped: bool,
}

type Encode<V> = fn(V) -> Result<Written, Source>;

/// Makes an attribute.
type Make = fn() -> Result<AttributeValue, Source>;

/// An attribute of the record `T`, whose values are of the type `V`. [`Edit`]s and [`Condition`]s are made from fields.
///
/// The derive macro gives a struct the constant `FIELDS`, with one field for each attribute that is no key, as visible as
/// the field of the struct. Each field writes its values as serde writes them in the whole item: under its name, with its `with`,
/// without what `skip_serializing_if` skips. A value that serde would not read back, or would read back as one that it writes
/// otherwise, is refused, as by a create. So an edit stores nothing that its table cannot read. Two values that serde writes
/// alike cannot be told apart, such as `Whole(1)` and `Decimal(1.0)` of an untagged enum: the first that fits is read.
///
/// ```
/// use fencepost::{Edit, Record};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Record)]
/// #[record(key = "accountId")]
/// #[serde(rename_all = "camelCase")]
/// struct Account {
///     balance: u64,
///     owners: Vec<String>,
///     #[serde(skip_serializing_if = "Option::is_none")]
///     frozen_by: Option<String>,
/// }
///
/// let fields = Account::FIELDS;
/// // Takes 100, but never more than there is, from an account that nobody froze.
/// let withdraw: Edit<Account> = fields.balance.add(-100, ..).only_if(fields.frozen_by.is_none());
/// let rename = fields.owners.append(["Ada".to_owned()]).and(fields.frozen_by.remove());
/// # drop((withdraw, rename));
/// ```
///
/// What the type of a field does not allow does not compile: a value of another type, an amount added to a text or to a
/// field that `with` stores in a form of its own, the removal of a field that has to be there.
///
/// ```compile_fail,E0308
/// # use fencepost::Record;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize, Record)]
/// # #[record(key = "accountId")]
/// # struct Account { balance: u64 }
/// let edit = Account::FIELDS.balance.set("text");
/// ```
///
/// `P` says whether the attribute may be missing: [`Required`], [`Optional`] (then `V` is the type in the `Option`),
/// [`Defaulted`], or a [`Member`] of a map. [`Custom`] marks a field that a function writes or reads.
///
/// A record that is implemented by hand declares its fields by hand: see [`Field::of`] and [`Field::with`].
pub struct Field<T, V, P = Required> {
    name: &'static str,
    /// The names below the attribute, if it is a map.
    below: Vec<String>,
    encode: Encoder<V>,
    default: Option<Make>,
    none: Option<Make>,
    of: PhantomData<fn() -> (T, P)>,
}

impl<T, V, P> fmt::Debug for Field<T, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Field").field(&self.path().join(".")).finish()
    }
}

impl<T, V, P: Attribute> Field<T, V, P> {
    /// Declares a field of a record that is implemented by hand. Serde writes its values.
    ///
    /// You state that the record stores a `V` under this name. An edit of an attribute that is not among
    /// [`Record::ATTRIBUTES`](crate::Record::ATTRIBUTES) is refused before anything is sent.
    ///
    /// ```
    /// use fencepost::field::{Field, Optional};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Account { balance: i64, note: Option<String> }
    /// # impl fencepost::Record for Account {
    /// #     const PARTITION_KEY: &'static str = "accountId";
    /// #     const ATTRIBUTES: &'static [&'static str] = &["balance", "note"];
    /// # }
    ///
    /// const BALANCE: Field<Account, i64> = Field::of("balance");
    /// const NOTE: Field<Account, String, Optional> = Field::of("note");
    /// let pay_in = BALANCE.add(7, 0..).and(NOTE.remove());
    /// # drop(pay_in);
    /// ```
    #[must_use]
    pub const fn of(name: &'static str) -> Self
    where
        V: Serialize + DeserializeOwned,
    {
        Field::with(name, checked::<V>)
    }

    /// Declares a field whose values this function writes, as the `encode` of the record does. `None` of an [`Optional`]
    /// field is `NULL`, or is not stored.
    ///
    /// ```
    /// use fencepost::AttributeValue;
    /// use fencepost::field::{Custom, Field, Required};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Image { hash: Vec<u8> }
    /// # impl fencepost::Record for Image {
    /// #     const PARTITION_KEY: &'static str = "imageId";
    /// #     const ATTRIBUTES: &'static [&'static str] = &["hash"];
    /// # }
    ///
    /// const HASH: Field<Image, Vec<u8>, Custom<Required>> = Field::with("hash", |hash| Ok(AttributeValue::B(hash)));
    /// # drop(HASH.set(vec![7]));
    /// ```
    #[must_use]
    pub const fn with(name: &'static str, encode: fn(V) -> Result<AttributeValue, Source>) -> Self {
        Field::made_of(name, Encoder::Value(encode), None, None)
    }

    /// What the derive macro declares: also the value that is read where there is none, and how `None` is written.
    #[doc(hidden)]
    #[must_use]
    pub const fn derived(name: &'static str, encode: Encode<V>, default: Option<Make>, none: Option<Make>) -> Self {
        Field::made_of(name, Encoder::Written(encode), default, none)
    }
}

/// What writes the values of a field.
enum Encoder<V> {
    Value(fn(V) -> Result<AttributeValue, Source>),
    Written(Encode<V>),
}

impl<T, V, P: Presence> Field<T, V, P> {
    /// Sets the value. Of a member of a map, the map must be there. A list in place of a stored set becomes a set of its
    /// kind, or the edit is refused. A [value that would not be read back](Field) is refused before anything is sent.
    pub fn set(&self, value: V) -> Edit<T> {
        Edit::made(|edit| {
            let written = self.written(value)?;
            let path = self.path();
            Ok(if written.is_skipped { edit.and_remove(path) } else { edit.and_set(path, written.value) })
        })
    }

    /// Sets the value if the stored one is lower, or if there is none. A higher one is left as it is, and the edit is applied
    /// all the same.
    ///
    /// Which of the two it is, is guessed from the item that this client saw last. A wrong guess costs one more request.
    pub fn raise_to(&self, value: V) -> Edit<T>
    where
        V: Ordered,
        P: StoredAsIs,
    {
        Edit::made(|edit| {
            let value = self.stored(value)?;
            let [lower, other] =
                [Comparison::Less, Comparison::AtLeast].map(|comparison| self.compared_to(comparison, value.clone()));
            let lower = match P::KIND {
                Kind::Optional | Kind::Member => RawCondition::Any(vec![self.absent()?, lower?]),
                Kind::Required | Kind::Defaulted => lower?,
            };
            Ok(edit.and_choose(self.path(), value, [lower, other?]))
        })
    }

    /// The field has this value, as `DynamoDB` compares values: numbers by their value, sets without an order, lists with
    /// theirs. A missing attribute has the default of its field. A `HashSet` that serde stores as a list has no lasting
    /// order, so it may differ from itself: give it a set module of `serde_dynamo`.
    pub fn is(&self, value: V) -> Condition<T> {
        self.compared(Comparison::Equal, value)
    }

    /// The field has another value, or none.
    pub fn is_not(&self, value: V) -> Condition<T> {
        !self.is(value)
    }

    /// The field has one of these values. There is at least one.
    pub fn is_any_of(&self, values: impl IntoIterator<Item = V>) -> Condition<T> {
        let mut values = values.into_iter().map(|value| self.is(value)).peekable();
        if values.peek().is_none() {
            return Condition::invalid(format!("{}: is_any_of needs a value", self.path().join(".")));
        }
        Condition::any(values)
    }

    /// The field has a value below this one. A missing attribute has the default of its field; without a default, it meets
    /// no comparison.
    pub fn is_less_than(&self, value: V) -> Condition<T>
    where
        V: Ordered,
        P: StoredAsIs,
    {
        self.compared(Comparison::Less, value)
    }

    /// The field has this value, or one below it: see [`Field::is_less_than`].
    pub fn is_at_most(&self, value: V) -> Condition<T>
    where
        V: Ordered,
        P: StoredAsIs,
    {
        self.compared(Comparison::AtMost, value)
    }

    /// The field has this value, or one above it: see [`Field::is_less_than`].
    pub fn is_at_least(&self, value: V) -> Condition<T>
    where
        V: Ordered,
        P: StoredAsIs,
    {
        self.compared(Comparison::AtLeast, value)
    }

    /// The field has a value above this one: see [`Field::is_less_than`].
    pub fn is_more_than(&self, value: V) -> Condition<T>
    where
        V: Ordered,
        P: StoredAsIs,
    {
        self.compared(Comparison::More, value)
    }

    fn compared(&self, comparison: Comparison, value: V) -> Condition<T> {
        let condition = self.written(value).and_then(|written| self.compared_to(comparison, written.value));
        condition.map_or_else(Condition::invalid, Condition::new)
    }

    /// The comparison, which a missing attribute meets if its default does.
    fn compared_to(&self, comparison: Comparison, value: AttributeValue) -> Result<RawCondition, String> {
        if P::KIND == Kind::Defaulted && self.default.is_none() {
            return Err(format!("{}: the default of a field that is declared by hand is not known", self.name));
        }
        let condition = RawCondition::At(self.path(), Demanded::Compared(comparison, value));
        let default = self.made(self.default)?.map(|default| Attributes::from([(self.name.to_owned(), default)]));
        Ok(if default.is_some_and(|default| is_likely(&condition, &default)) {
            RawCondition::Any(vec![self.at(Demanded::Missing), condition])
        } else {
            condition
        })
    }

    fn at(&self, demanded: Demanded) -> RawCondition {
        RawCondition::At(self.path(), demanded)
    }

    /// There is no value: `None` is stored in its form, or nothing is, and that is read as `None`.
    fn absent(&self) -> Result<RawCondition, String> {
        if P::KIND == Kind::Member {
            return Ok(self.at(Demanded::Missing));
        }
        let none = self.made(self.none)?.unwrap_or(AttributeValue::Null(true));
        let is_missing_none = self.made(self.default)?.is_none_or(|default| default == none);
        let stored = self.at(match none {
            AttributeValue::Null(_) => Demanded::Type("NULL"),
            none => Demanded::Compared(Comparison::Equal, none),
        });
        Ok(if is_missing_none { RawCondition::Any(vec![self.at(Demanded::Missing), stored]) } else { stored })
    }

    fn made(&self, make: Option<Make>) -> Result<Option<AttributeValue>, String> {
        make.map(|make| make()).transpose().map_err(|error| self.named(&error))
    }

    /// Removes the value, if there is one. A field with a default is then read as its default; the removal of an `Option`
    /// whose default is a value is refused. Of a member of a map, the map must be there.
    pub fn remove(&self) -> Edit<T>
    where
        P: MayBeAbsent,
    {
        Edit::made(|edit| {
            let [default, none] = [self.made(self.default)?, self.made(self.none)?];
            if P::KIND == Kind::Optional && default.is_some() && default != none {
                return Err(format!("{}: without it, its default is read, which is a value", self.path().join(".")));
            }
            Ok(edit.and_remove(self.path()))
        })
    }

    /// Sets the value if there is none. One that is there is left as it is, and the edit is applied all the same. The
    /// choice is guessed like that of [`Field::raise_to`].
    pub fn set_if_none(&self, value: V) -> Edit<T>
    where
        P: MayBeNone,
    {
        Edit::made(|edit| {
            let (value, none) = (self.stored(value)?, self.absent()?);
            Ok(edit.and_choose(self.path(), value, [none.clone(), RawCondition::Not(Box::new(none))]))
        })
    }

    /// There is no value: nothing is stored, or what serde stores for `None`, mostly `NULL`. A member of a map that is `null`
    /// is a value.
    pub fn is_none(&self) -> Condition<T>
    where
        P: MayBeNone,
    {
        self.absent().map_or_else(Condition::invalid, Condition::new)
    }

    /// There is a value.
    pub fn is_some(&self) -> Condition<T>
    where
        P: MayBeNone,
    {
        !self.is_none()
    }

    /// Adds an amount to the number that is there, if the result keeps its [`Bounds`]: a range such as `0..=100`,
    /// `0..` or `..=100` for the result of a whole amount, [`Bounds::Before`] for any, or `..` for none but those of the type. A result that
    /// the type cannot hold is refused in any case, and so is a [value's end](crate::Record::EXPIRES_AT) after the year 9999.
    ///
    /// The literature calls an add within bounds *escrow* (O'Neil 1986) or a *bounded counter*. Sums are those of
    /// `DynamoDB`: exact up to 38 significant digits. For numbers that need more, use
    /// [`Table::update_with_retry`](crate::Table::update_with_retry).
    pub fn add(&self, by: V::Amount, bounds: impl Into<Bounds>) -> Edit<T>
    where
        T: Record,
        V: Quantity,
        P: StoredAsIs,
    {
        let path = self.path();
        let range = if T::EXPIRES_AT == Some(self.name) && path.len() == 1 {
            let (least, most) = V::RANGE.unwrap_or((i128::MIN, i128::MAX));
            Some((least.max(0), most.min(LAST_END.into())))
        } else {
            V::RANGE
        };
        Edit::made(|edit| Ok(edit.and_add(path, by, bounds, range)))
    }

    /// Appends members to the list. The list must be there, and a stored set is none.
    pub fn append(&self, members: impl IntoIterator<Item = V::Member>) -> Edit<T>
    where
        V: List,
        P: StoredAsIs,
    {
        Edit::made(|edit| {
            let members = members.into_iter().map(V::encode_member).collect::<Result<_, _>>();
            Ok(edit.and_append(self.path(), members.map_err(|error| self.named(&error))?))
        })
    }

    /// The member of the map under this name, which is literal: a dot in it separates nothing.
    ///
    /// # Errors
    /// No expression of `DynamoDB` can hold the name: it is empty, or longer than 255 bytes, or 31 names lead to the map.
    pub fn member(&self, name: &str) -> Result<Field<T, V::Member, Member>, InvalidValue>
    where
        V: Members,
        P: StoredAsIs,
    {
        if !(1..=255).contains(&name.len()) || self.below.len() >= 30 {
            let rule = "the name of a member has 1 to 255 bytes, and at most 31 names lead to it";
            return Err(InvalidValue::Malformed(format!("{}: {rule}", self.path().join(".")).into()));
        }
        let below = [self.below.as_slice(), &[name.to_owned()]].concat();
        Ok(Field { below, ..Field::made_of(self.name, Encoder::Value(V::encode_member), None, None) })
    }
}

impl<T> Edit<T> {
    /// Sets an attribute by the range of the result of `number`, to which this edit adds a whole amount. Ranges must not
    /// overlap. A result outside all of them is refused.
    ///
    /// The range is guessed from the number that this client saw last. A wrong guess costs one more request.
    pub fn bands<V, P: Attribute, N: Quantity, Q: Presence>(
        self,
        attribute: &Field<T, V, P>,
        number: &Field<T, N, Q>,
        bands: impl IntoIterator<Item = (RangeInclusive<i64>, V)>,
    ) -> Self {
        self.map(|edit| {
            let stored = |(range, value)| Ok((range, attribute.stored(value)?));
            let bands = bands.into_iter().map(stored).collect::<Result<Vec<_>, String>>()?;
            Ok(edit.bands(attribute.name, number.path(), bands))
        })
    }

    /// Sets an attribute along with the rest, such as the time of the last change. Alone, it is no change for
    /// [`Edit::only_if_changed`].
    pub fn stamp<V, P: Attribute>(self, attribute: &Field<T, V, P>, value: V) -> Self {
        self.map(|edit| Ok(edit.stamp(attribute.name, attribute.stored(value)?)))
    }
}

impl<T, V, P> Field<T, V, P> {
    const fn made_of(name: &'static str, encode: Encoder<V>, default: Option<Make>, none: Option<Make>) -> Self {
        Field { name, below: Vec::new(), encode, default, none, of: PhantomData }
    }

    /// The names that lead to the value: the attribute, then the members of maps.
    fn path(&self) -> Vec<String> {
        [&[self.name.to_owned()], self.below.as_slice()].concat()
    }

    fn written(&self, value: V) -> Result<Written, String> {
        let written = match self.encode {
            Encoder::Value(encode) => encode(value).map(|value| Written { value, is_skipped: false }),
            Encoder::Written(encode) => encode(value),
        };
        written.map_err(|error| self.named(&error))
    }

    /// The attribute of a value that serde stores.
    fn stored(&self, value: V) -> Result<AttributeValue, String> {
        let written = self.written(value)?;
        let skipped = || format!("{}: serde does not store this value", self.path().join("."));
        if written.is_skipped { Err(skipped()) } else { Ok(written.value) }
    }

    fn named(&self, error: &Source) -> String {
        format!("{}: {error}", self.path().join("."))
    }
}

#[cfg(feature = "json")]
impl<T, P> Field<T, serde_json::Value, P> {
    /// The same place as that of a number, to which an edit may add. An item that has no number there refuses the edit.
    #[must_use]
    pub fn number(&self) -> Field<T, Number, P> {
        let encode: fn(Number) -> Result<AttributeValue, Source> = |number| Ok(AttributeValue::N(number.to_string()));
        Field { below: self.below.clone(), ..Field::made_of(self.name, Encoder::Value(encode), None, None) }
    }
}

/// Writes a value with serde, if serde reads it back as the same.
fn checked<V: Serialize + DeserializeOwned>(value: V) -> Result<AttributeValue, Source> {
    let written: AttributeValue = serde_dynamo::to_attribute_value(value)?;
    let again: V = serde_dynamo::from_attribute_value(written.clone()).map_err(|error| not_read(&error))?;
    check_same(&written, &serde_dynamo::to_attribute_value(again)?)?;
    Ok(written)
}

pub(crate) fn not_read(error: &serde_dynamo::Error) -> Source {
    format!("it would not be read back: {error}").into()
}

/// Refuses a value that is read back as another one. What `DynamoDB` cannot keep at all is refused elsewhere.
#[doc(hidden)]
pub fn check_same(written: &AttributeValue, again: &AttributeValue) -> Result<(), Source> {
    let [mut one, mut other] = [written, again].map(|value| Attributes::from([("value".to_owned(), value.clone())]));
    let is_kept = settle_all(None, &mut one).and_then(|()| settle_all(None, &mut other)).is_ok();
    match first_difference(&one, &other) {
        Some(_) if is_kept => Err("it would be read back as another value".into()),
        _ => Ok(()),
    }
}

/// The attribute has to be there: without it, the record does not decode.
pub enum Required {}

/// An `Option`. One with a reader of its own (`with` or `deserialize_with`) and without serde's `default` is [`Required`],
/// because serde does not read the record without it.
pub enum Optional {}

/// A field with serde's `default` that is no `Option`. Without the attribute, it has its default.
pub enum Defaulted {}

/// A member of a map, which may be missing.
pub enum Member {}

/// A function writes or reads the attribute: `with`, `serialize_with` or `deserialize_with`. So its type says nothing of its
/// form: it can be set and compared for equality, and it has no order, no sum and no members.
pub struct Custom<P>(PhantomData<P>);

/// Whether a field may be missing.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Required,
    Optional,
    Defaulted,
    Member,
}

/// Whether a field may be missing, and how it is stored.
pub trait Presence: private::Sealed {
    #[doc(hidden)]
    const KIND: Kind;
}

/// An attribute of the record itself.
#[diagnostic::on_unimplemented(message = "only a whole attribute is meant here, and this is a member of a map")]
pub trait Attribute: Presence {}

/// A field that may be missing.
#[diagnostic::on_unimplemented(
    message = "this field has to be there: without it, the record does not decode",
    note = "give it serde's `default`, or make it an `Option` that serde reads by itself"
)]
pub trait MayBeAbsent: Presence {}

/// A field that may have no value.
#[diagnostic::on_unimplemented(
    message = "this field always has a value",
    note = "only an `Option` and a member of a map may have none; an `Option` with a `with` also needs serde's `default`"
)]
pub trait MayBeNone: Presence {}

/// A field that serde stores as its type says.
#[diagnostic::on_unimplemented(
    message = "a function writes or reads this field (such as `with`), so its type does not say how it is stored",
    note = "set the whole value instead, or use `Table::update_with_retry`"
)]
pub trait StoredAsIs: Presence {}

mod private {
    pub trait Sealed {}
    impl Sealed for super::Required {}
    impl Sealed for super::Optional {}
    impl Sealed for super::Defaulted {}
    impl Sealed for super::Member {}
    impl<P: Sealed> Sealed for super::Custom<P> {}
}

impl Presence for Required {
    const KIND: Kind = Kind::Required;
}
impl Presence for Optional {
    const KIND: Kind = Kind::Optional;
}
impl Presence for Defaulted {
    const KIND: Kind = Kind::Defaulted;
}
impl Presence for Member {
    const KIND: Kind = Kind::Member;
}
impl<P: Presence> Presence for Custom<P> {
    const KIND: Kind = P::KIND;
}
impl Attribute for Required {}
impl Attribute for Optional {}
impl Attribute for Defaulted {}
impl<P: Attribute> Attribute for Custom<P> {}
impl MayBeAbsent for Optional {}
impl MayBeAbsent for Defaulted {}
impl MayBeAbsent for Member {}
impl<P: MayBeAbsent> MayBeAbsent for Custom<P> {}
impl MayBeNone for Optional {}
impl MayBeNone for Member {}
impl<P: MayBeNone> MayBeNone for Custom<P> {}
impl StoredAsIs for Required {}
impl StoredAsIs for Optional {}
impl StoredAsIs for Defaulted {}
impl StoredAsIs for Member {}

/// A type whose values are stored as numbers, texts or bytes in the order of the type. Implement it for a newtype of such a
/// type. An enum has no such order, because its variants are stored by their names.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not stored in the order of its values",
    note = "a newtype of a number or a text implements `fencepost::field::Ordered`"
)]
pub trait Ordered {}

impl Ordered for String {}
impl Ordered for char {}
impl Ordered for f32 {}
impl Ordered for f64 {}
impl Ordered for Number {}
impl Ordered for Timestamp {}

/// A type that serde stores as a number, to which an edit may add. Implement it for a newtype of a number.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Cents(u32);
///
/// impl fencepost::field::Quantity for Cents {
///     type Amount = i64;
///     const RANGE: Option<(i128, i128)> = Some((0, u32::MAX as i128));
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "an edit cannot add to a `{Self}`",
    note = "it adds to integers of at most 64 bits, `f64` and `fencepost::Number`: take one of these for `f32`, `i128` or `u128`",
    note = "a newtype of such a number implements `fencepost::field::Quantity`"
)]
pub trait Quantity {
    /// The type of the amounts: an integer for whole numbers, else [`Number`].
    type Amount: Into<Number>;
    /// The least and the largest number, if the type holds only whole numbers, of at most 38 digits. `None` if it reads
    /// every number of `DynamoDB`.
    const RANGE: Option<(i128, i128)>;
}

macro_rules! whole {
    ($($number:ty: $least:expr, $most:expr;)*) => {$(
        impl Ordered for $number {}

        impl Quantity for $number {
            type Amount = i64;
            #[expect(clippy::allow_attributes, reason = "not every type needs each of them")]
            #[allow(clippy::cast_lossless, clippy::unnecessary_cast, reason = "one macro for all numbers")]
            const RANGE: Option<(i128, i128)> = Some(($least as i128, $most as i128));
        }
    )*};
}

whole! {
    u8: u8::MIN, u8::MAX;
    u16: u16::MIN, u16::MAX;
    u32: u32::MIN, u32::MAX;
    u64: u64::MIN, u64::MAX;
    i8: i8::MIN, i8::MAX;
    i16: i16::MIN, i16::MAX;
    i32: i32::MIN, i32::MAX;
    i64: i64::MIN, i64::MAX;
    usize: 0, usize::MAX;
    isize: isize::MIN, isize::MAX;
    NonZeroU8: 1, u8::MAX;
    NonZeroU16: 1, u16::MAX;
    NonZeroU32: 1, u32::MAX;
    NonZeroU64: 1, u64::MAX;
}

impl Quantity for f64 {
    type Amount = Number;
    const RANGE: Option<(i128, i128)> = None;
}

impl Quantity for Number {
    type Amount = Number;
    const RANGE: Option<(i128, i128)> = None;
}

/// A type that serde stores as a list, to which an edit may append.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not stored as a list in which the order and the copies of members count"
)]
pub trait List {
    /// The type of the members.
    type Member;

    /// Writes a member.
    ///
    /// # Errors
    /// The reason why it cannot be written, or would not be read back.
    fn encode_member(member: Self::Member) -> Result<AttributeValue, Source>;
}

impl<V: Serialize + DeserializeOwned> List for Vec<V> {
    type Member = V;

    fn encode_member(member: V) -> Result<AttributeValue, Source> {
        checked(member)
    }
}

impl<V: Serialize + DeserializeOwned> List for VecDeque<V> {
    type Member = V;

    fn encode_member(member: V) -> Result<AttributeValue, Source> {
        checked(member)
    }
}

/// A type that is stored as a map with any members of one type, which an edit may change one by one. With the feature
/// `json`, the objects of the module `json` are such maps too.
#[diagnostic::on_unimplemented(message = "`{Self}` is not a map whose members an edit may change one by one")]
pub trait Members {
    /// The type of the members.
    type Member;

    /// Writes a member.
    ///
    /// # Errors
    /// The reason why it cannot be written, or would not be read back.
    fn encode_member(member: Self::Member) -> Result<AttributeValue, Source>;
}

impl<V: Serialize + DeserializeOwned> Members for BTreeMap<String, V> {
    type Member = V;

    fn encode_member(member: V) -> Result<AttributeValue, Source> {
        checked(member)
    }
}

impl<V: Serialize + DeserializeOwned, S: BuildHasher> Members for HashMap<String, V, S> {
    type Member = V;

    fn encode_member(member: V) -> Result<AttributeValue, Source> {
        checked(member)
    }
}
