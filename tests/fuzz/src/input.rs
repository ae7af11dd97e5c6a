//! [`Input`]: draws values from the bytes of an input.

use fencepost::AttributeValue;
use fencepost::Attributes;

/// The remaining bytes. After the last one, all values are the simplest: 0, empty, the first.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Input(bytes)
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }

    pub fn text(&mut self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// A number near one of those at which rules change.
    pub fn number(&mut self) -> u64 {
        let near = match self.below(8) {
            0..=3 => u64::from(self.byte()),
            4 => (1 << 53) - 1,
            5 => 1_772_877_600,
            6 => i64::MAX.unsigned_abs(),
            _ => {
                let mut bytes = [0; 8];
                bytes.fill_with(|| self.byte());
                return u64::from_le_bytes(bytes);
            }
        };
        near.wrapping_add(u64::from(self.byte())).wrapping_sub(u64::from(self.byte()))
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.byte()) % of.len()]
    }

    /// 8 bytes from a few likely patterns, so two draws are often equal.
    pub fn id(&mut self) -> [u8; 8] {
        [self.below(4); 8]
    }

    /// A value of any kind, at most a few levels deep.
    pub fn value(&mut self, depth: u8) -> AttributeValue {
        match self.below(if depth == 0 { 8 } else { 10 }) {
            0 => AttributeValue::N(self.number().to_string()),
            1 => AttributeValue::N(format!("-{}", self.number())),
            2 => AttributeValue::N(self.text()),
            3 => AttributeValue::S(self.text()),
            4 => AttributeValue::B(Vec::from(self.id())),
            5 => AttributeValue::B(Vec::from(self.bytes())),
            6 if self.flag() => AttributeValue::Bool(self.flag()),
            6 => AttributeValue::Null(true),
            7 if self.flag() => AttributeValue::Ss(vec![self.text()]),
            7 => AttributeValue::Ns(vec![self.number().to_string()]),
            8 => AttributeValue::L((0..self.below(4)).map(|_| self.value(depth - 1)).collect()),
            _ => AttributeValue::M((0..self.below(4)).map(|_| (self.text(), self.value(depth - 1))).collect()),
        }
    }

    /// Attributes with some of these names, and perhaps others.
    pub fn attributes(&mut self, names: &[&str]) -> Attributes {
        let count = self.below(8);
        (0..count)
            .map(|_| {
                let name = if self.below(8) == 7 { self.text() } else { self.pick(names).to_owned() };
                (name, self.value(2))
            })
            .collect()
    }
}
