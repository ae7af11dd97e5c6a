//! Two leaders, one child.
