//! The effects of `fencepost` without features on a user's build. `.ci/outside` runs these tests and looks at the
//! packages.

#[cfg(test)]
mod tests {
    use fencepost::Record;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(untagged)]
    enum Setting {
        Number(f64),
        Text(String),
    }

    #[test]
    fn an_untagged_enum_still_reads_a_number() {
        assert_eq!(serde_json::from_str::<Setting>("1.5").expect("a number"), Setting::Number(1.5));
        assert_eq!(serde_json::from_str::<Setting>(r#""x""#).expect("a text"), Setting::Text("x".to_owned()));
    }

    #[test]
    fn trace_lines_are_not_compiled_away() {
        assert_eq!(tracing::level_filters::STATIC_MAX_LEVEL, tracing::level_filters::LevelFilter::TRACE);
    }

    #[derive(Serialize, Deserialize, Record)]
    #[record(key = "noteId")]
    struct Note {
        more: serde_json::Value,
    }

    /// The programs of `tests/histories/programs/` look at the stored form in a build with
    /// `serde_json/arbitrary_precision`.
    #[test]
    fn the_numbers_of_json_are_stored_as_in_a_build_with_other_features() {
        let more = serde_json::json!({"whole": 7, "one": 1.0, "half": 0.5, "large": 1e60, "deep": [{"n": -2.25}]});
        let encoded = Note { more }.encode().expect("attributes");
        let more = serde_json::to_value(&encoded["more"]).expect("JSON");
        for (name, number) in [("whole", "7"), ("one", "1"), ("half", "0.5"), ("large", "1e+60")] {
            assert_eq!(more["M"][name]["N"], number, "{name}");
        }
        assert_eq!(more["M"]["deep"]["L"][0]["M"]["n"]["N"], "-2.25");
    }
}
