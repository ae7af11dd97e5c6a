//! The report of `cargo dev bench`: its page, its tables, its plots, and a run that is stopped.

mod example;
mod files;
mod markup;
mod page;
mod plots;
mod process;
mod run;
