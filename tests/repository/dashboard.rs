//! The dashboard of the template, drawn from a recorded run of a real function. `docs/dashboard.svg` is such a drawing.

use super::alarms::{Drawn, NAMESPACE, drawn, widgets};
use crate::devices::process::{overtaken, start};
use crate::devices::world::{TABLES, World};
use crate::harness::emf::Metrics;
use crate::harness::events::Event;
use crate::harness::runtime_api::FunctionProcess;
use crate::harness::server::{Fault, Server};
use plotters::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where the drawing is left. Copy it to `docs/` when the dashboard has changed.
const DRAWING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/dashboard.svg");
const PERIODS: usize = 12;
const PANEL: (u32, u32) = (560, 240);

/// What happens in one period of the run. Trouble begins in the fifth one and is over in the tenth.
async fn play(period: usize, server: &Server, process: &FunctionProcess) {
    let patch = |value: usize| Event::patch_state().text(&format!(r#"{{"volume":{value}}}"#));
    process.answer(&Event::create()).await;
    for request in 0..8 {
        process.answer(&Event::get()).await;
        process.answer(&patch(period * 10 + request)).await;
    }
    process.answer(&Event::adjust().key("one-key")).await;
    let trouble = [0, 1, 3, 5, 4, 2].get(period.wrapping_sub(4)).copied().unwrap_or(0);
    for round in 0..trouble {
        overtaken(server, process, patch(1000 + period * 10 + round)).await;
        server.fail_writes(&[Fault::AnswerLost]);
        process.answer(&patch(2000 + period * 10 + round)).await;
    }
    if period == 7 {
        server.fail_writes(&[Fault::AnswerLost, Fault::Denied]);
        process.answer(&patch(3000)).await;
        World::on(&server.engine).plant(&json!({"deviceId": {"S": "lamp-2"}, "_version": {"N": "-1"}}));
        process.answer(&Event::get().device("lamp-2")).await;
    }
}

/// The value of a statistic. A period without a value is 0.
fn statistic(name: &str, values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    match name {
        "Sum" => values.iter().sum(),
        "Maximum" => sorted.last().copied().unwrap_or(0),
        "p99" => sorted.get((sorted.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0),
        other => panic!("the dashboard has a statistic {other}, which nothing works out"),
    }
}

/// The lines of a widget: a label, and a value for each period.
fn lines_of(widget: &Value, run: &[Metrics]) -> BTreeMap<String, Vec<u64>> {
    let mut lines = BTreeMap::new();
    for Drawn { name, dimensions, statistic: wanted } in drawn(widget) {
        for (period, metrics) in run.iter().enumerate() {
            for (values_of, values) in metrics.by(&name, &dimensions) {
                let label = if values_of.is_empty() { format!("{name} ({wanted})") } else { values_of };
                lines.entry(label).or_insert_with(|| vec![0; PERIODS])[period] = statistic(&wanted, values);
            }
        }
    }
    lines
}

type Panel<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(panel: &Panel<'_>, title: &str, lines: &BTreeMap<String, Vec<u64>>) -> Result<(), Box<dyn std::error::Error>> {
    let most = lines.values().flatten().max().copied().unwrap_or(0).max(1);
    let mut chart = ChartBuilder::on(panel)
        .caption(title, ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(36)
        .build_cartesian_2d(0..PERIODS - 1, 0..most + most.div_ceil(10))?;
    chart.configure_mesh().light_line_style(TRANSPARENT).x_desc("periods of five minutes").draw()?;
    for (index, (label, values)) in lines.iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let points = values.iter().enumerate().map(|(period, value)| (period, *value));
        let line = chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
        line.label(label).legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], colour.stroke_width(2)));
    }
    if lines.is_empty() {
        let text = Text::new("AWS writes these metrics; a run without AWS has none", (1, 1), ("sans-serif", 13));
        chart.plotting_area().draw(&text)?;
    } else {
        let mut labels = chart.configure_series_labels();
        labels.position(SeriesLabelPosition::UpperLeft).label_font(("sans-serif", 11));
        labels.background_style(WHITE.mix(0.8)).draw()?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_dashboard_shows_the_trouble_of_a_recorded_run() {
    let server = Server::start(TABLES).await;
    let mut run = Vec::new();
    for period in 0..PERIODS {
        // A process for each period, as a new version or a quiet hour brings one.
        let process = start(&server, &[("METRICS_NAMESPACE", NAMESPACE)]).await;
        play(period, &server, &process).await;
        run.push(Metrics::read(&process.end().await, NAMESPACE));
    }
    let widgets = widgets();
    let rows = u32::try_from(widgets.len().div_ceil(2)).expect("a few");
    let page = SVGBackend::new(DRAWING, (2 * PANEL.0, rows * PANEL.1)).into_drawing_area();
    page.fill(&WHITE).expect("a drawing");
    let mut flat = Vec::new();
    for (panel, widget) in page.split_evenly((rows as usize, 2)).iter().zip(&widgets) {
        let (title, lines) = (widget["properties"]["title"].as_str().expect("a title"), lines_of(widget, &run));
        draw(panel, title, &lines).expect("a drawing");
        // Trouble is in the eighth period, and none in the first. Durations depend on the machine.
        let depends = drawn(widget).iter().any(|line| line.statistic == "p99");
        if !lines.is_empty() && !depends && !lines.values().any(|values| values[7] > values[0]) {
            flat.push(title.to_owned());
        }
    }
    page.present().expect("a drawing");
    assert_eq!(flat, Vec::<String>::new(), "these widgets show nothing of the trouble");
}
