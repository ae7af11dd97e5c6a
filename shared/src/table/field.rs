//! [`Field`]: an attribute of a record, with the type of its values. Edits and conditions are made from fields.

use super::edit::{Condition, Edit};
use crate::error::Source;
use fencepost_core::condition::{Comparison, Condition as RawCondition, Demanded};
use fencepost_core::edit::RawEdit;
use fencepost_core::{AttributeValue, Bounds, InvalidValue, Number};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::num::{NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64};
use std::ops::RangeInclusive;

/// Writes a value as its attribute. `None` if serde skips such a value.
type Encode<V> = fn(V) -> Result<Option<AttributeValue>, Source>;

/// An attribute of the record `T`, whose values are of the type `V`. [`Edit`]s and [`Condition`]s are made from fields.
///
/// The derive macro gives a struct the constant `FIELDS`, with one field for each attribute, as visible as the field of
/// the struct. Each field writes its values as serde writes them in the whole item: under its name, with its `with`,
/// without what `skip_serializing_if` skips. So an edit stores nothing that its table cannot read.
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
/// `P` says whether the attribute may be missing: [`Required`], [`Optional`] (an `Option`, or a field with serde's
/// `default`), or a [`Member`] of a map. [`Custom`] marks a field with a `with` or `serialize_with`.
///
/// A record that is implemented by hand declares its fields by hand: see [`Field::of`] and [`Field::with`].
pub struct Field<T, V, P = Required> {
    name: &'static str,
    /// The names below the attribute, if it is a map.
    below: Vec<String>,
    encode: Encode<V>,
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
        V: Serialize,
    {
        Field::with(name, plain::<V>)
    }

    /// Declares a field whose values this function writes. `None` stands for a value that is not stored: to set it
    /// removes the attribute.
    #[must_use]
    pub const fn with(name: &'static str, encode: fn(V) -> Result<Option<AttributeValue>, Source>) -> Self {
        Field { name, below: Vec::new(), encode, of: PhantomData }
    }
}

impl<T, V, P: Presence> Field<T, V, P> {
    /// Sets the value. Of a member of a map, the map must be there. A list in place of a stored set becomes a set of its
    /// kind, or the edit is refused.
    pub fn set(&self, value: V) -> Edit<T> {
        self.edit(value, |edit, path, value| match value {
            Some(value) => edit.and_set(path, value),
            None => edit.and_remove(path),
        })
    }

    /// Sets the value if the stored one is lower, or missing. A higher one is left as it is, and the edit is applied all the
    /// same. The order is that of [`Field::is_less_than`].
    ///
    /// Which of the two it is, is guessed from the item that this client saw last. A wrong guess costs one more request.
    pub fn raise_to(&self, value: V) -> Edit<T> {
        let none = self.absent();
        self.edit_stored(value, |edit, path, value| {
            let [lower, other] = [Comparison::Less, Comparison::AtLeast]
                .map(|by| RawCondition::At(path.clone(), Demanded::Compared(by, value.clone())));
            edit.and_choose(path, value, [RawCondition::Any(vec![none, lower]), other])
        })
    }

    /// The field has this value, as `DynamoDB` compares values: numbers by their value, sets without an order.
    pub fn is(&self, value: V) -> Condition<T> {
        match self.encoded(value) {
            Ok(Some(value)) => self.demand(Demanded::Compared(Comparison::Equal, value)),
            Ok(None) => Condition::new(self.absent()),
            Err(reason) => Condition::invalid(reason),
        }
    }

    /// The field has another value, or none.
    pub fn is_not(&self, value: V) -> Condition<T> {
        !self.is(value)
    }

    /// The field has one of these values. There is at least one.
    pub fn is_any_of(&self, values: impl IntoIterator<Item = V>) -> Condition<T> {
        Condition::any(values.into_iter().map(|value| self.is(value)))
    }

    /// The field has a value below this one. A missing value meets no comparison. Numbers are compared as numbers, texts and
    /// bytes byte by byte; other values have no order, and the edit is refused. A [`Custom`] field is compared in the form
    /// in which its function writes it: times in RFC 3339 and one zone have their order, numbers written as texts do not.
    pub fn is_less_than(&self, value: V) -> Condition<T> {
        self.compared(Comparison::Less, value)
    }

    /// The field has this value, or one below it: see [`Field::is_less_than`].
    pub fn is_at_most(&self, value: V) -> Condition<T> {
        self.compared(Comparison::AtMost, value)
    }

    /// The field has this value, or one above it: see [`Field::is_less_than`].
    pub fn is_at_least(&self, value: V) -> Condition<T> {
        self.compared(Comparison::AtLeast, value)
    }

    /// The field has a value above this one: see [`Field::is_less_than`].
    pub fn is_more_than(&self, value: V) -> Condition<T> {
        self.compared(Comparison::More, value)
    }

    fn compared(&self, comparison: Comparison, value: V) -> Condition<T> {
        match self.stored(value) {
            Ok(value) => self.demand(Demanded::Compared(comparison, value)),
            Err(reason) => Condition::invalid(reason),
        }
    }

    fn demand(&self, demanded: Demanded) -> Condition<T> {
        Condition::new(RawCondition::At(self.path(), demanded))
    }

    /// There is no value: none is stored, or the `NULL` that serde writes for `None`.
    fn absent(&self) -> RawCondition {
        let at = |demanded| RawCondition::At(self.path(), demanded);
        if P::STORES_NONE {
            RawCondition::Any(vec![at(Demanded::Missing), at(Demanded::Type("NULL"))])
        } else {
            at(Demanded::Missing)
        }
    }

    fn edit_stored(&self, value: V, change: impl FnOnce(RawEdit, Vec<String>, AttributeValue) -> RawEdit) -> Edit<T> {
        Edit::made(|edit| Ok(change(edit, self.path(), self.stored(value)?)))
    }

    fn edit(&self, value: V, change: impl FnOnce(RawEdit, Vec<String>, Option<AttributeValue>) -> RawEdit) -> Edit<T> {
        Edit::made(|edit| Ok(change(edit, self.path(), self.encoded(value)?)))
    }

    /// Removes the value, if there is one. Of a member of a map, the map must be there.
    pub fn remove(&self) -> Edit<T>
    where
        P: MayBeAbsent,
    {
        Edit::made(|edit| Ok(edit.and_remove(self.path())))
    }

    /// Sets the value if there is none. One that is there is left as it is, and the edit is applied all the same. The
    /// choice is guessed like that of [`Field::raise_to`].
    pub fn set_if_none(&self, value: V) -> Edit<T>
    where
        P: MayBeAbsent,
    {
        let none = self.absent();
        self.edit_stored(value, |edit, path, value| {
            edit.and_choose(path, value, [none.clone(), RawCondition::Not(Box::new(none))])
        })
    }

    /// There is no value. The `NULL` that serde stores for the `None` of an `Option` is none. A member of a map that is
    /// `null` is a value.
    pub fn is_none(&self) -> Condition<T>
    where
        P: MayBeAbsent,
    {
        Condition::new(self.absent())
    }

    /// There is a value.
    pub fn is_some(&self) -> Condition<T>
    where
        P: MayBeAbsent,
    {
        !self.is_none()
    }

    /// Adds an amount to the number that is there, if the result keeps its [`Bounds`]: a range such as `0..=100` or
    /// `0..` for the result, or `..` for none but those of the type. A result that the type cannot hold is refused in any case.
    ///
    /// The literature calls an add within bounds *escrow* (O'Neil 1986) or a *bounded counter*. Sums are those of
    /// `DynamoDB`: exact up to 38 significant digits. For numbers that need more, use
    /// [`Table::update_with_retry`](crate::Table::update_with_retry).
    pub fn add(&self, by: V::Amount, bounds: impl Into<Bounds>) -> Edit<T>
    where
        V: Quantity,
        P: StoredAsIs,
    {
        Edit::made(|edit| Ok(edit.and_add(self.path(), by, bounds, V::RANGE)))
    }

    /// Appends members to the list. The list must be there, and a stored set is none.
    pub fn append(&self, members: impl IntoIterator<Item = V::Member>) -> Edit<T>
    where
        V: List,
        P: StoredAsIs,
    {
        Edit::made(|edit| {
            let members = members.into_iter().map(serde_dynamo::to_attribute_value).collect::<Result<_, _>>();
            Ok(edit.and_append(self.path(), members.map_err(|error| self.named(&error.into()))?))
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
        Ok(Field { name: self.name, below, encode: V::encode_member, of: PhantomData })
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
            Ok(edit.bands(attribute.name(), number.path(), bands))
        })
    }

    /// Sets an attribute along with the rest, such as the time of the last change. Alone, it is no change for
    /// [`Edit::only_if_changed`].
    pub fn stamp<V, P: Attribute>(self, attribute: &Field<T, V, P>, value: V) -> Self {
        self.map(|edit| Ok(edit.stamp(attribute.name(), attribute.stored(value)?)))
    }
}

impl<T, V, P> Field<T, V, P> {
    /// The names that lead to the value: the attribute, then the members of maps.
    pub(super) fn path(&self) -> Vec<String> {
        [&[self.name.to_owned()], self.below.as_slice()].concat()
    }

    /// The attribute.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The attribute of the value. `None` if serde skips it.
    pub(super) fn encoded(&self, value: V) -> Result<Option<AttributeValue>, String> {
        (self.encode)(value).map_err(|error| self.named(&error))
    }

    /// The attribute of a value that is stored.
    pub(super) fn stored(&self, value: V) -> Result<AttributeValue, String> {
        self.encoded(value)?.ok_or_else(|| format!("{}: serde does not store this value", self.path().join(".")))
    }

    fn named(&self, error: &Source) -> String {
        format!("{}: {error}", self.path().join("."))
    }

    /// The same place as that of a number.
    #[cfg(feature = "json")]
    pub(crate) fn of_numbers(&self) -> Field<T, Number, P> {
        let encode = |number: Number| Ok(Some(AttributeValue::N(number.to_string())));
        Field { name: self.name, below: self.below.clone(), encode, of: PhantomData }
    }
}

/// Writes a value with serde.
fn plain<V: Serialize>(value: V) -> Result<Option<AttributeValue>, Source> {
    Ok(Some(serde_dynamo::to_attribute_value(value)?))
}

/// The attribute has to be there: without it, the record does not decode.
pub enum Required {}

/// The attribute may be missing: an `Option`, or a field with serde's `default`.
pub enum Optional {}

/// A member of a map, which may be missing.
pub enum Member {}

/// Serde writes the attribute through a function: `with` or `serialize_with`. So its type says nothing of its form.
pub struct Custom<P>(PhantomData<P>);

/// Whether a field may be missing, and how it is stored.
pub trait Presence: private::Sealed {
    /// Whether a stored `NULL` is no value.
    #[doc(hidden)]
    const STORES_NONE: bool = false;
}

/// An attribute of the record itself.
#[diagnostic::on_unimplemented(message = "only a whole attribute is meant here, and this is a member of a map")]
pub trait Attribute: Presence {}

/// A field that may be missing.
#[diagnostic::on_unimplemented(
    message = "this field has to be there: without it, the record does not decode",
    note = "make it an `Option`, or give it serde's `default`"
)]
pub trait MayBeAbsent: Presence {}

/// A field that serde stores as its type says.
#[diagnostic::on_unimplemented(
    message = "a function writes this field (`with` or `serialize_with`), so its type does not say how it is stored",
    note = "set the whole value instead, or use `Table::update_with_retry`"
)]
pub trait StoredAsIs: Presence {}

mod private {
    pub trait Sealed {}
    impl Sealed for super::Required {}
    impl Sealed for super::Optional {}
    impl Sealed for super::Member {}
    impl<P: Sealed> Sealed for super::Custom<P> {}
}

impl Presence for Required {}
impl Presence for Optional {
    const STORES_NONE: bool = true;
}
impl Presence for Member {}
impl<P: Presence> Presence for Custom<P> {
    const STORES_NONE: bool = P::STORES_NONE;
}
impl Attribute for Required {}
impl Attribute for Optional {}
impl<P: Attribute> Attribute for Custom<P> {}
impl MayBeAbsent for Optional {}
impl MayBeAbsent for Member {}
impl<P: MayBeAbsent> MayBeAbsent for Custom<P> {}
impl StoredAsIs for Required {}
impl StoredAsIs for Optional {}
impl StoredAsIs for Member {}

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
    message = "`{Self}` is not stored as a number, so nothing can be added to it",
    note = "a newtype of a number implements `fencepost::field::Quantity`"
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
        impl Quantity for $number {
            type Amount = i64;
            #[expect(clippy::allow_attributes, reason = "not every type needs each of them")]
            #[allow(clippy::cast_lossless, clippy::unnecessary_cast, reason = "one macro for all numbers")]
            const RANGE: Option<(i128, i128)> = Some(($least as i128, $most as i128));
        }
    )*};
}

/// The largest whole number of 38 digits, which is the longest that `DynamoDB` keeps.
const LARGEST: i128 = 10_i128.pow(38) - 1;

whole! {
    u8: u8::MIN, u8::MAX;
    u16: u16::MIN, u16::MAX;
    u32: u32::MIN, u32::MAX;
    u64: u64::MIN, u64::MAX;
    u128: 0, LARGEST;
    i8: i8::MIN, i8::MAX;
    i16: i16::MIN, i16::MAX;
    i32: i32::MIN, i32::MAX;
    i64: i64::MIN, i64::MAX;
    i128: -LARGEST, LARGEST;
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
    type Member: Serialize;
}

impl<V: Serialize> List for Vec<V> {
    type Member = V;
}

impl<V: Serialize> List for VecDeque<V> {
    type Member = V;
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
    /// The reason why it cannot be written.
    fn encode_member(member: Self::Member) -> Result<Option<AttributeValue>, Source>;
}

impl<V: Serialize> Members for BTreeMap<String, V> {
    type Member = V;

    fn encode_member(member: V) -> Result<Option<AttributeValue>, Source> {
        plain(member)
    }
}

impl<V: Serialize, S: BuildHasher> Members for HashMap<String, V, S> {
    type Member = V;

    fn encode_member(member: V) -> Result<Option<AttributeValue>, Source> {
        plain(member)
    }
}
