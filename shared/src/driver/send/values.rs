//! Values of the core as those of the SDK, and back. Both ways take the value apart, and copy none of its texts.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue as SdkValue, ReturnValue};
use fencepost_core::condition::Returned;
use fencepost_core::{AttributeValue, Attributes};
use std::collections::HashMap;

/// An item of the SDK.
pub type Item = HashMap<String, SdkValue>;

/// An item in the form of the SDK.
#[must_use]
pub fn to_sdk(attributes: Attributes) -> Item {
    attributes.into_iter().map(|(name, value)| (name, value.into())).collect()
}

/// An item of the SDK as attributes. A value of a kind that the SDK does not know becomes `Null(false)`, which no table
/// stores.
#[must_use]
pub fn from_sdk(item: Item) -> Attributes {
    item.into_iter().map(|(name, value)| (name, value_from_sdk(value))).collect()
}

fn value_from_sdk(value: SdkValue) -> AttributeValue {
    match value {
        SdkValue::S(text) => AttributeValue::S(text),
        SdkValue::N(number) => AttributeValue::N(number),
        SdkValue::B(bytes) => AttributeValue::B(bytes.into_inner()),
        SdkValue::Bool(is) => AttributeValue::Bool(is),
        SdkValue::Null(is) => AttributeValue::Null(is),
        SdkValue::L(members) => AttributeValue::L(members.into_iter().map(value_from_sdk).collect()),
        SdkValue::M(members) => AttributeValue::M(from_sdk(members)),
        SdkValue::Ss(members) => AttributeValue::Ss(members),
        SdkValue::Ns(members) => AttributeValue::Ns(members),
        SdkValue::Bs(members) => AttributeValue::Bs(members.into_iter().map(Blob::into_inner).collect()),
        _ => AttributeValue::Null(false),
    }
}

pub(super) fn return_value(returned: Returned) -> ReturnValue {
    match returned {
        Returned::AllNew => ReturnValue::AllNew,
        Returned::AllOld => ReturnValue::AllOld,
    }
}
