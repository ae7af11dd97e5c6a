//! The rules of rows without a version: leases, and instances of which the newest wins.

use super::{Breaches, Rule, number_of};
use fencepost_core::format::AsKind;
use fencepost_core::format::item::Attributes;
use fencepost_core::lease;

pub(super) fn check_lease(before: Option<&Attributes>, after: &Attributes, is_one: bool, found: &mut Breaches) {
    let after = match lease::read(after) {
        Ok(after) => after,
        Err(why) => return found.add(Rule::Readable, why.to_string()),
    };
    let Some(Ok(before)) = before.map(lease::read) else { return };
    let [was, is] = [before.at(), after.at()];
    let was_held = before.holder.is_some();
    let broken = if is.token < was.token {
        Some("its token fell")
    } else if !is_one {
        None
    } else if is.token > was.token {
        (after.holder.is_none() || is.renewals > 0).then_some("it has a higher token without an acquire")
    } else if after.holder.is_some() && after.holder != before.holder {
        Some("it has another holder under the same token")
    } else if is.renewals == was.renewals {
        (after.expires_at != before.expires_at).then_some("it has another end without a renewal")
    } else if was.renewals.checked_add(1) != Some(is.renewals) {
        Some("it was not renewed one time, but its renewals changed")
    } else if !was_held || after.holder.is_none() {
        Some("it was renewed while nobody held it")
    } else {
        (after.expires_at == before.expires_at).then_some("the same renewal was applied twice")
    };
    if let Some(broken) = broken {
        found.add(Rule::Lease, format!("{broken}: {was:?} became {is:?}"));
    }
}

/// An instance without a name stands after all others with its number.
pub(super) fn check_instance(
    [order, name]: [&str; 2],
    purge_at: &str,
    before: Option<&Attributes>,
    after: &Attributes,
    found: &mut Breaches,
) {
    let Some(before) = before else { return };
    let place = |image: &Attributes| {
        let name = image.get(name).and_then(AsKind::as_s).cloned();
        Some((number_of(image, order)?, name.is_none(), name))
    };
    let (Some(was), Some(is)) = (place(before), place(after)) else { return };
    let is_live = |image: &Attributes| !image.contains_key(purge_at);
    let broken = match (is_live(before), is_live(after)) {
        _ if was < is => return,
        (_, false) if was == is => return,
        (false, true) => "what was deleted came back",
        (true, true) if was == is => "an instance was written where it stood",
        (true, true) => "an older instance replaced a newer one",
        (true, false) => "a delete removed a newer instance",
        (false, false) => "a tombstone replaced a newer one",
    };
    found.add(Rule::Newest, format!("{broken}: {was:?} became {is:?}"));
}
