//! The functions, one module each. A binary of `src/bin/` serves one of them on Lambda.
//!
//! Each module describes itself in its `FUNCTION`. [`order`], [`product`] and [`mapping`] are records that several functions
//! use.

// A handler fails with the problem of each answer that is not a success, a parser with one that names the field or the
// parameter, a start with a sentence that names the variable.
#![allow(clippy::missing_errors_doc)]

pub mod delete_mapping;
pub mod device_state;
pub mod ensure_child;
pub mod function;
pub mod host_mapping;
pub mod inventory;
pub mod lease;
pub mod mapping;
pub mod operation;
pub mod order;
pub mod place_order;
pub mod product;
pub mod settle_holds;

/// Every function. No binary names this list. So a binary has only the code of its function.
pub const ALL: &[function::Function] = &[
    device_state::FUNCTION,
    inventory::FUNCTION,
    place_order::FUNCTION,
    host_mapping::FUNCTION,
    delete_mapping::FUNCTION,
    lease::FUNCTION,
    ensure_child::FUNCTION,
    settle_holds::FUNCTION,
];
