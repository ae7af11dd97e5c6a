//! A strict reader of HTML and SVG: what is not well-formed panics.

use std::collections::BTreeMap;

/// An element with its attributes, its children, and the text directly in it.
#[derive(Default, Debug)]
pub struct Element {
    pub name: String,
    pub attributes: BTreeMap<String, String>,
    pub children: Vec<Element>,
    pub text: String,
}

impl Element {
    /// Reads a document with one root.
    pub fn read(document: &str) -> Self {
        let mut open = vec![Element::default()];
        let mut rest = document.trim_start().trim_start_matches("<!DOCTYPE html>");
        while let Some(start) = rest.find('<') {
            let (text, from) = rest.split_at(start);
            open.last_mut().expect("a document").text += &unescaped(text);
            let end = from.find('>').unwrap_or_else(|| panic!("a tag does not end: {from:.60}"));
            let tag = &from[1..end];
            rest = &from[end + 1..];
            if let Some(name) = tag.strip_prefix('/') {
                let element = open.pop().expect("an element");
                assert_eq!(element.name, name, "the element that ends");
                open.last_mut().unwrap_or_else(|| panic!("</{name}> ends nothing")).children.push(element);
            } else {
                let element = opened(tag.trim_end_matches('/'));
                if tag.ends_with('/') {
                    open.last_mut().expect("a document").children.push(element);
                } else {
                    open.push(element);
                }
            }
        }
        assert!(rest.trim().is_empty(), "text after the end: {rest:.60}");
        assert_eq!(open.len(), 1, "{} does not end", open.last().expect("a document").name);
        let mut roots = open.remove(0).children;
        assert_eq!(roots.len(), 1, "one root");
        roots.remove(0)
    }

    /// All elements of this name, in order of the document.
    pub fn all(&self, name: &str) -> Vec<&Element> {
        let mut found: Vec<_> = if self.name == name { vec![self] } else { Vec::new() };
        for child in &self.children {
            found.extend(child.all(name));
        }
        found
    }

    /// The only element with this id.
    pub fn with_id(&self, id: &str) -> &Element {
        let mut found = Vec::new();
        self.collect_ids(&mut found);
        let found: Vec<_> = found.into_iter().filter(|(own, _)| *own == id).collect();
        assert_eq!(found.len(), 1, "elements with the id {id}");
        found[0].1
    }

    fn collect_ids<'a>(&'a self, found: &mut Vec<(&'a str, &'a Element)>) {
        found.extend(self.attributes.get("id").map(|id| (id.as_str(), self)));
        self.children.iter().for_each(|child| child.collect_ids(found));
    }

    /// All ids of the document.
    pub fn ids(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.collect_ids(&mut found);
        found.into_iter().map(|(id, _)| id).collect()
    }

    /// The attributes that would run a script.
    pub fn handlers(&self) -> Vec<String> {
        let own = self.attributes.keys().filter(|name| name.starts_with("on")).cloned();
        own.chain(self.children.iter().flat_map(Element::handlers)).collect()
    }

    /// An attribute, which must be there.
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).unwrap_or_else(|| panic!("<{}> has no {name}", self.name))
    }

    /// An attribute that is a number.
    pub fn number(&self, name: &str) -> f64 {
        self.attribute(name).parse().expect("a number")
    }

    /// The text of the element and of everything in it.
    pub fn whole_text(&self) -> String {
        self.children.iter().fold(self.text.clone(), |text, child| text + &child.whole_text())
    }

    /// The cells of each row of the body of a table.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let rows = self.all("tbody")[0].all("tr");
        rows.iter().map(|row| row.children.iter().map(Element::whole_text).collect()).collect()
    }
}

fn opened(tag: &str) -> Element {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !name.is_empty(), "the name of <{tag}>");
    let mut element = Element { name: name.to_owned(), ..Element::default() };
    while !rest.trim().is_empty() {
        // `download` has no value in HTML.
        let (attribute, after) = rest.trim_start().split_once("=\"").unwrap_or((rest.trim(), "\""));
        let (value, after) = after.split_once('"').unwrap_or_else(|| panic!("an open quote in <{tag}>"));
        assert!(!value.contains('<') && !attribute.contains(char::is_whitespace), "<{tag}>");
        let twice = element.attributes.insert(attribute.to_owned(), unescaped(value));
        assert!(twice.is_none(), "{attribute} twice in <{tag}>");
        rest = after;
    }
    element
}

fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        let (entity, after) = after.split_once(';').unwrap_or_else(|| panic!("a bare & in {text}"));
        plain += before;
        plain.push(match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" | "#39" => '\'',
            other => panic!("the unknown entity {other}"),
        });
        rest = after;
    }
    plain + rest
}

#[test]
fn what_is_not_well_formed_is_noticed() {
    let whole = "<!DOCTYPE html>\n<a b=\"1 &lt; 2\"><c/>x<d>y</d></a>\n";
    let read = Element::read(whole);
    assert_eq!((read.attribute("b"), read.whole_text()), ("1 < 2", "xy".to_owned()));
    for broken in
        ["<a>", "<a></b>", "<a/><b/>", "<a>&nbsp;</a>", "<a>1 & 2</a>", "<a b=\"1></a>", "<a b=\"\" b=\"\"/>", "</a>"]
    {
        std::panic::catch_unwind(|| Element::read(broken)).expect_err(broken);
    }
}
