//! The part of `CloudWatch`'s metric math that template.yaml uses, worked out for one period.
//!
//! Source: <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html>

/// The value of an expression: numbers, ids, `+ - * >=`, `FILL(id, number)` and `IF(condition, then, else)`. `value` gives
/// the value of an id. `None` if a value is missing that no `FILL` replaces.
pub fn evaluate(expression: &str, value: &impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let mut rest = Rest { text: expression, whole: expression };
    let result = rest.comparison(value);
    assert!(rest.text.trim().is_empty(), "{expression}: {} is left over", rest.text);
    result
}

/// What is not read yet of an expression.
struct Rest<'a> {
    text: &'a str,
    whole: &'a str,
}

impl Rest<'_> {
    fn takes(&mut self, token: &str) -> bool {
        let rest = self.text.trim_start().strip_prefix(token);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    fn must_take(&mut self, token: &str) {
        assert!(self.takes(token), "{}: {token} is required before {:?}", self.whole, self.text);
    }

    fn comparison(&mut self, value: &impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let left = self.sum(value);
        if !self.takes(">=") {
            return left;
        }
        let right = self.sum(value);
        Some(if left? >= right? { 1.0 } else { 0.0 })
    }

    fn sum(&mut self, value: &impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let mut all = self.product(value);
        loop {
            let sign = if self.takes("+") {
                1.0
            } else if self.takes("-") {
                -1.0
            } else {
                return all;
            };
            let next = self.product(value);
            all = all.zip(next).map(|(all, next)| all + sign * next);
        }
    }

    fn product(&mut self, value: &impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let mut all = self.factor(value);
        while self.takes("*") {
            let next = self.factor(value);
            all = all.zip(next).map(|(all, next)| all * next);
        }
        all
    }

    fn factor(&mut self, value: &impl Fn(&str) -> Option<f64>) -> Option<f64> {
        if self.takes("FILL(") {
            let filled = self.comparison(value);
            self.must_take(",");
            let instead = self.comparison(value);
            self.must_take(")");
            return filled.or(instead);
        }
        if self.takes("IF(") {
            let condition = self.comparison(value);
            self.must_take(",");
            let then = self.comparison(value);
            self.must_take(",");
            let otherwise = self.comparison(value);
            self.must_take(")");
            return if condition? == 0.0 { otherwise } else { then };
        }
        let text = self.text.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.text = rest;
        word.parse().ok().or_else(|| value(word))
    }
}

#[test]
fn expressions_are_worked_out_as_cloudwatch_does() {
    let value = |id: &str| match id {
        "a" => Some(4.0),
        "b" => Some(2.0),
        _ => None,
    };
    for (expression, expected) in [
        ("a - 1.5 * b", Some(1.0)),
        ("a + missing", None),
        ("FILL(missing, 7) + FILL(a, 0)", Some(11.0)),
        ("IF(FILL(a, 0) >= 4, 1, 0)", Some(1.0)),
        ("IF(b >= a, 1, 0)", Some(0.0)),
    ] {
        assert_eq!(evaluate(expression, &value), expected, "{expression}");
    }
}
