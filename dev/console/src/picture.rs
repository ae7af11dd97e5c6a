//! The picture of the first story for the README, as SVG in light and in dark, made of the moments of its first recorded play.

use crate::stories::{STORIES, play};
use serde_json::Value;
use std::fmt::Write as _;

/// The colours of one scheme: the background, the text, what is beside it, right, wrong.
const SCHEMES: [(&str, [&str; 5]); 2] = [
    ("light", ["#ffffff", "#12181d", "#55616c", "#0f6b4b", "#b3261e"]),
    ("dark", ["#0d1117", "#e8edf1", "#a1adb8", "#62d3a0", "#ff8f82"]),
];
const WIDTH: usize = 880;
const ROW: usize = 26;
const TOP: usize = 96;

/// A line of a side: its time, its words, and how often the change has been applied if this is such a moment.
struct Line {
    at: u64,
    what: &'static str,
    applied: Option<u64>,
}

/// The pictures, each with its name.
///
/// # Panics
/// If the first story has no play.
#[must_use]
pub fn pictures() -> Vec<(String, String)> {
    let story = STORIES[0];
    let played = play(story, story.recorded().next().expect("a recorded play"));
    let about = story.to_json();
    let sides: Vec<_> =
        (0..2).map(|side| lines(played.moments.iter().filter(|moment| moment["side"] == side))).collect();
    let height = TOP + ROW * sides.iter().map(Vec::len).max().unwrap_or_default();
    let picture = |(scheme, [paper, ink, muted, good, bad]): (&str, [&str; 5])| {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"ui-monospace, Menlo, Consolas, \
             monospace\" font-size=\"15\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"{paper}\"/>\n"
        );
        let mut text = |x: usize, y: usize, style: &str, what: &str| {
            let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" {style}>{what}</text>");
        };
        let title = "One answer gets lost. The usual loop adds 1 twice. Fencepost adds it once.";
        text(20, 34, &format!("fill=\"{ink}\" font-weight=\"bold\" font-size=\"17\""), title);
        for (side, lines) in sides.iter().enumerate() {
            let left = 20 + side * WIDTH / 2;
            let (held, name) =
                (&played.ends[side]["counters"]["held"], about["sides"][side]["title"].as_str().unwrap_or_default());
            let colour = if played.ends[side]["good"] == true { good } else { bad };
            text(left, 70, &format!("fill=\"{colour}\" font-weight=\"bold\""), &format!("{name}: +{held}"));
            for (row, Line { at, what, applied }) in lines.iter().enumerate() {
                let y = TOP + row * ROW;
                text(left, y, &format!("fill=\"{muted}\""), &format!("{at} ms"));
                text(left + 74, y, &format!("fill=\"{}\"", if *applied > Some(1) { bad } else { ink }), what);
                if let Some(applied) = applied {
                    text(
                        left + 360,
                        y,
                        &format!("fill=\"{}\"", if *applied > 1 { bad } else { good }),
                        &format!("+{applied}"),
                    );
                }
            }
        }
        (format!("first-{scheme}.svg"), svg + "</svg>\n")
    };
    SCHEMES.map(picture).into()
}

fn lines<'a>(moments: impl Iterator<Item = &'a Value>) -> Vec<Line> {
    let (mut lines, mut writes, mut times) = (Vec::new(), Vec::new(), 0);
    for moment in moments {
        let outcome = moment["outcome"].as_str().unwrap_or_default();
        let what = match (moment["kind"].as_str().unwrap_or_default(), outcome) {
            ("sent", _) if moment["is"] == "write" => {
                writes.push(moment["request"].clone());
                if moment["resend"] != true {
                    continue;
                }
                "the same write again"
            }
            ("arrived", "done") if writes.contains(&moment["request"]) => {
                times += 1;
                if times == 1 { "applied" } else { "applied again" }
            }
            ("heard", "lost") => "✗ the answer is lost",
            ("heard", "conflict") => "refused, by itself",
            ("note", _) => "believes that it lost a race",
            ("judged", _) => "finds its id in the row",
            ("answered", _) => "Ok",
            _ => continue,
        };
        let applied = what.starts_with("applied").then_some(times);
        lines.push(Line { at: moment["at"].as_u64().unwrap_or_default(), what, applied });
    }
    lines
}
