//! The results of a run as tables in the terminal, and as a report: one page, its plots and its tables beside it.

pub mod bars;
pub mod canvas;
pub mod colour;
pub mod csv;
pub mod escape;
pub mod facts;
pub mod folder;
pub mod found;
pub mod html;
pub mod lines;
pub mod markdown;
pub mod page;
pub mod plot;
pub mod scale;
pub mod section;
pub mod sections;
pub mod summary;
pub mod table;
