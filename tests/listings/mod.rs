//! Listings: queries of tables and indexes, their cursors, and reads of many keys.

mod messages;
mod pages;
mod scans;
