//! The functions, one module each. A binary of `src/bin/` serves one of them on Lambda.

pub mod delete_mapping;
pub mod device_state;
pub mod ensure_child;
pub mod host_mapping;
pub mod inventory;
pub mod lease;
pub mod place_order;
