//! Reads many rows by their keys, each strongly consistent.

use crate::call::Call;
use crate::error::Failure;
use crate::protocol::deliver::{pause_before_read, until_read};
use crate::protocol::item::Attributes;
use crate::protocol::send::{Address, Sender};

/// The most rows of one batch (`DynamoDB` quota).
pub(crate) const MAX_ROWS: usize = 100;

/// Reads at most [`MAX_ROWS`] different rows until all are answered or time is up, and returns them in the order of
/// `rows`. Asks again, after a pause, for those missing from an answer.
pub(crate) async fn read_rows(
    sender: &Sender,
    call: &Call,
    rows: &[Address],
) -> Result<Vec<Option<Attributes>>, Failure> {
    let mut found = vec![None; rows.len()];
    let mut left: Vec<usize> = (0..rows.len()).collect();
    let mut batches = 0;
    while !left.is_empty() {
        if batches > 0 {
            let source = "some rows were not read: the table is throttled, or the answer was full".into();
            pause_before_read(sender, call, batches, source).await?;
        }
        batches += 1;
        let asked: Vec<Address> = left.iter().map(|&at| rows[at].clone()).collect();
        let mut answered = until_read(sender, call, |timeout| sender.read_batch(&asked, timeout)).await?;
        let mut position = 0..;
        left.retain(|&at| {
            let item = position.next().and_then(|position| answered.remove(&position));
            let is_left_out = item.is_none();
            found[at] = item.flatten();
            is_left_out
        });
    }
    Ok(found)
}
