//! The futures of all operations are small. They are `Send` too: the programs of `histories/` spawn them as tasks.

use super::accounts::{Account, TABLE, engine};
use fencepost::lease::LeaseTerms;
use fencepost::{Attempt, Error, Key, Reads, Store};

/// The SDK's futures take kilobytes, and nested in a caller's futures they overflow the compiler and small stacks.
#[test]
fn futures_are_small() {
    let store = Store::new(&engine().client());
    let (table, leases, key) = (store.table::<Account>(TABLE), store.leases("Leases"), Key::from("a"));
    let decide = |account: &Account| Ok::<_, String>(Some(account.clone()));
    let nothing = |_: &mut Attempt| Ok::<_, Error<String>>(());
    for (operation, bytes) in [
        ("get", size_of_val(&table.get(&key))),
        ("update_with_retry", size_of_val(&table.update_with_retry(&key, decide))),
        ("transact_with_retry", size_of_val(&store.transact_with_retry(Reads::new(), nothing))),
        ("acquire", size_of_val(&leases.acquire("k", "me", LeaseTerms::default()))),
        ("while_held", size_of_val(&leases.while_held("k", "me", LeaseTerms::default(), |_| async {}))),
    ] {
        assert!(bytes < 8 * 1024, "{operation} takes {bytes} bytes");
    }
}
