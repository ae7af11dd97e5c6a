//! Reads metrics from log lines as `CloudWatch` does: by the specification of the embedded metric format.
//!
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use serde_json::Value;
use std::collections::BTreeMap;

type Metric = (String, BTreeMap<String, String>);

/// The values of all metrics of one namespace, in the order of the lines.
#[derive(Default, Debug)]
pub struct Metrics(BTreeMap<Metric, Vec<u64>>);

impl Metrics {
    /// Reads all lines. A line that breaks the specification fails the test. A line without `_aws` has no metrics.
    pub fn read(lines: &[Value], namespace: &str) -> Self {
        let mut metrics = Metrics::default();
        for line in lines.iter().filter(|line| line.get("_aws").is_some()) {
            assert!(line.to_string().len() <= 1024 * 1024, "a line has at most 1 MB");
            assert!(line["_aws"]["Timestamp"].is_u64(), "milliseconds since 1970: {line}");
            for directive in array(&line["_aws"]["CloudWatchMetrics"]) {
                assert_eq!(text(&directive["Namespace"]), namespace);
                metrics.read_directive(line, directive);
            }
        }
        metrics
    }

    fn read_directive(&mut self, line: &Value, directive: &Value) {
        let definitions = array(&directive["Metrics"]);
        assert!(definitions.len() <= 100, "a directive has at most 100 metrics");
        for dimensions in array(&directive["Dimensions"]) {
            assert!(array(dimensions).len() <= 30, "a metric has at most 30 dimensions");
            let dimensions: BTreeMap<_, _> = array(dimensions)
                .iter()
                .map(|name| (text(name).to_owned(), text(&line[text(name)]).to_owned()))
                .inspect(|(name, value)| assert!(value.len() <= 1024, "{name} is too long for a dimension"))
                .collect();
            for definition in definitions {
                let (name, unit) = (text(&definition["Name"]), text(&definition["Unit"]));
                assert!(["Count", "Milliseconds"].contains(&unit), "{unit} is no unit of CloudWatch that we use");
                let value = line[name].as_u64().unwrap_or_else(|| panic!("{name} is no whole number: {line}"));
                self.0.entry((name.to_owned(), dimensions.clone())).or_default().push(value);
            }
        }
    }

    /// The values of a metric with exactly these dimensions.
    pub fn values(&self, name: &str, dimensions: &[(&str, &str)]) -> &[u64] {
        let dimensions = dimensions.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.0.get(&(name.to_owned(), dimensions)).map_or(&[], Vec::as_slice)
    }

    pub fn sum(&self, name: &str, dimensions: &[(&str, &str)]) -> u64 {
        self.values(name, dimensions).iter().sum()
    }

    /// The names of all dimensions.
    pub fn dimensions(&self) -> Vec<&str> {
        let mut names: Vec<_> =
            self.0.keys().flat_map(|(_, dimensions)| dimensions.keys().map(String::as_str)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("an array is required: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or_else(|| panic!("a text is required: {value}"))
}
