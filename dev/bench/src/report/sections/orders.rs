//! Orders both ways.

use crate::figure::Figure;
use crate::measure::orders::{Orders, Row, SEED, WANTED, WAYS};
use crate::report::bars::{Bars, Group};
use crate::report::colour::Colour;
use crate::report::plot::{Drawing, Plot};
use crate::report::section::Section;
use crate::report::table::Table;
use crowds::orders::{CLIENTS, Scene, Way};

/// The tables and plots.
#[must_use]
pub fn section(orders: &Orders) -> Section {
    Section {
        about: format!(
            "{CLIENTS} clients place {WANTED} orders each, 5 ms to the table and 5 ms back. The usual way reads, sends one \
             transaction on the bare SDK with the SDK's retries, and gives each order a random id. Its client asks again \
             after an error. Acknowledged orders are those whose success a client has heard. Held ones are in the table. \
             Orders per second are those of the engine, which has no capacity: DynamoDB takes fewer of one product."
        ),
        seeds: SEED.to_string(),
        tables: vec![table(orders)],
        plots: vec![
            plot(
                orders,
                ("orders-doubled", "Orders that were placed twice", "Held orders without the acknowledged ones."),
                |row| &row.doubled,
            ),
            plot(
                orders,
                ("orders-requests", "Requests for one order", "Requests to the tables for each acknowledged order."),
                |row| &row.requests,
            ),
        ],
        ..Section::default()
    }
}

fn name(way: Way) -> &'static str {
    if way == Way::Usual { "usual way" } else { "Fencepost" }
}

fn name_of(Scene { products, losses, conflicts }: Scene) -> String {
    let plural = if products == 1 { "" } else { "s" };
    let trouble = match (conflicts, losses) {
        (false, false) => "",
        (true, false) => ", transaction conflicts",
        (true, true) => ", transaction conflicts, 2 % of answers lost",
        (false, true) => ", 2 % of answers lost",
    };
    format!("{products} product{plural}{trouble}")
}

fn table(orders: &Orders) -> Table {
    let about = format!("{CLIENTS} clients, {WANTED} orders each, 5 ms hops (virtual time)");
    let mut table = Table::new(
        "orders",
        &[
            &about,
            "acknowledged",
            "held",
            "stock taken",
            "unknown, asked again",
            "given up",
            "requests per order",
            "orders per second on the engine",
            "x usual",
        ],
    );
    for row in &orders.rows {
        let Row { way, scene, acknowledged, held, taken, unknown, gave_up, requests, per_second, times_usual, .. } =
            row;
        let what = format!("{}, {}", name(*way), name_of(*scene)).into();
        let figures = [acknowledged, held, taken, unknown, gave_up, requests, per_second, times_usual];
        table.push([what].into_iter().chain(figures.map(Into::into)));
    }
    table
}

fn plot(orders: &Orders, (name_of_file, title, about): (&'static str, &str, &str), of: fn(&Row) -> &Figure) -> Plot {
    let mut groups: Vec<Group> = Vec::new();
    for rows in orders.rows.chunks(WAYS.len()) {
        let Some(first) = rows.first() else { continue };
        groups.push(Group { name: name_of(first.scene), bars: Ok(rows.iter().map(|row| of(row).clone()).collect()) });
    }
    let colour = |way| if way == Way::Usual { Colour::Usual } else { Colour::Ours };
    Plot {
        name: name_of_file,
        title: title.to_owned(),
        about: about.to_owned(),
        drawing: Drawing::Bars(Bars {
            unit: String::new(),
            ways: WAYS.map(|way| (name(way).to_owned(), colour(way))).into(),
            groups,
            limit: None,
        }),
    }
}
