//! The functions, one module each. A binary of `src/bin/` serves one of them on Lambda.
//!
//! What two functions write stands beside them: [`product`] and [`mapping`].

pub mod delete_mapping;
pub mod device_state;
pub mod ensure_child;
pub mod host_mapping;
pub mod inventory;
pub mod lease;
pub mod mapping;
pub mod place_order;
pub mod product;
