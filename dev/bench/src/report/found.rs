//! [`Found`]: the typed result of any part of a run.

use crate::measure::adds::Adds;
use crate::measure::connections::Connections;
use crate::measure::crowds::Crowds;
use crate::measure::function::Function;
use crate::measure::leases::Leases;
use crate::measure::orders::Orders;
use crate::measure::roots::Roots;
use crate::measure::units::Units;

/// The result of one part.
#[derive(Clone, Debug)]
pub enum Found {
    /// The size, start and memory of a function.
    Function(Box<Function>),
    /// Crowds of writers.
    Crowds(Crowds),
    /// Adds.
    Adds(Adds),
    /// Write units of adds.
    Units(Units),
    /// Orders.
    Orders(Orders),
    /// Leases.
    Leases(Leases),
    /// Slow connections.
    Connections(Connections),
    /// The start with TLS roots from different places.
    Roots(Roots),
}
