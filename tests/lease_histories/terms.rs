//! Terms are whole or refused.
