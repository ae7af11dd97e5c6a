//! The area that a plot is drawn on.

use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, SVGBackend};

/// The width of each plot. On a phone its texts are still legible.
pub const WIDTH: u32 = 560;

/// The area of one plot.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
