//! Eight everyday programs of a user: see `tests`.
