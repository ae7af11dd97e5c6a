//! A table as CSV (RFC 4180): <https://www.rfc-editor.org/rfc/rfc4180>.

use super::table::Table;

/// The table. The first line has its headings.
#[must_use]
pub fn of(table: &Table) -> String {
    let cells = table.rows.iter().map(|row| row.iter().map(super::table::Cell::text).collect::<Vec<_>>());
    let line = |fields: Vec<String>| fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(",") + "\r\n";
    [table.columns.clone()].into_iter().chain(cells).map(line).collect()
}

/// A field is quoted if it has a comma, a quote or a line break, and its quotes are doubled.
fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Cell;
    use super::*;
    use crate::figure::Figure;

    #[test]
    fn what_would_break_a_field_is_quoted() {
        let mut table = Table::new("table", &["what, and how", "figure"]);
        table.push([Cell::from("plain"), Cell::from(&Figure::new(1.5, 2))]);
        table.push([Cell::from("a \"word\""), Cell::Missing("two\nlines".to_owned())]);
        let expected = concat!(
            "\"what, and how\",figure\r\n",
            "plain,1.50\r\n",
            "\"a \"\"word\"\"\",\"missing: two\nlines\"\r\n",
        );
        assert_eq!(of(&table), expected);
    }
}
