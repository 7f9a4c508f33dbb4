//! Protobuf's wire format, read from a file in passing: large fields are skipped, not loaded.

use std::ops::Range;

use crate::error::FileError;
use crate::source::Source;

/// How much is read from the file at once.
const WINDOW: u64 = 1 << 16;

/// Names and words are shorter than this; what is longer is no name.
const MAX_TEXT: u64 = 1 << 20;

/// The value of a field. Bytes are a place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(Range<u64>),
}

/// Reads fields of messages of one file.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) source: Source,
    window: Vec<u8>,
    window_start: u64,
}

impl Reader {
    pub(super) fn new(source: Source) -> Self {
        Reader { source, window: Vec::new(), window_start: 0 }
    }

    /// The next field of the message that the range holds, or `None` at its end. The range moves on.
    pub(super) fn field(&mut self, rest: &mut Range<u64>) -> Result<Option<(u64, Value)>, FileError> {
        if rest.start >= rest.end {
            return Ok(None);
        }
        let tag_at = rest.start;
        let tag = self.varint(rest)?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint(rest)?),
            1 => Value::Fixed64(self.fixed(rest, 8)?),
            2 => {
                let at = rest.start;
                let length = self.varint(rest)?;
                let left = rest.end - rest.start;
                if length > left {
                    let expected = format!("a field of at most the {left} bytes that are left");
                    return Err(self.error(at, expected, format!("one of {length} bytes")));
                }
                let bytes = rest.start..rest.start + length;
                rest.start = bytes.end;
                Value::Bytes(bytes)
            }
            5 => Value::Fixed32(self.fixed(rest, 4)? as u32),
            other => return Err(self.error(tag_at, "a wire type of 0, 1, 2 or 5", other)),
        };
        Ok(Some((tag >> 3, value)))
    }

    /// The text of a field.
    pub(super) fn text(&mut self, value: &Value) -> Result<String, FileError> {
        let range = self.bytes(value)?;
        if range.end - range.start > MAX_TEXT {
            let found = format!("{} bytes", range.end - range.start);
            return Err(self.error(range.start, format!("a text of at most {MAX_TEXT} bytes"), found));
        }
        let bytes = self.source.read(range.clone())?;
        String::from_utf8(bytes).map_err(|_| self.error(range.start, "UTF-8 text", "other bytes"))
    }

    /// The text of a field that need not be one: `None` for what is too long or no UTF-8.
    pub(super) fn short_text(&mut self, value: &Value) -> Result<Option<String>, FileError> {
        let range = self.bytes(value)?;
        if range.end - range.start > MAX_TEXT {
            return Ok(None);
        }
        Ok(String::from_utf8(self.source.read(range)?).ok())
    }

    /// The place of a nested message, text or block of bytes.
    pub(super) fn bytes(&self, value: &Value) -> Result<Range<u64>, FileError> {
        match value {
            Value::Bytes(range) => Ok(range.clone()),
            other => Err(self.wrong("a nested message or bytes", other)),
        }
    }

    pub(super) fn int(&self, value: &Value) -> Result<i64, FileError> {
        match value {
            // Negative numbers are written as their two's complement.
            Value::Varint(bits) => Ok(*bits as i64),
            other => Err(self.wrong("an integer", other)),
        }
    }

    pub(super) fn float(&self, value: &Value) -> Result<f32, FileError> {
        match value {
            Value::Fixed32(bits) => Ok(f32::from_bits(*bits)),
            other => Err(self.wrong("a float", other)),
        }
    }

    /// One integer, or a packed list of them, appended to `list`.
    pub(super) fn ints(&mut self, value: &Value, list: &mut Vec<i64>) -> Result<(), FileError> {
        match value {
            Value::Bytes(range) => {
                let mut rest = range.clone();
                while rest.start < rest.end {
                    list.push(self.varint(&mut rest)? as i64);
                }
                Ok(())
            }
            other => {
                list.push(self.int(other)?);
                Ok(())
            }
        }
    }

    /// One float, or a packed list of them, appended to `list`.
    pub(super) fn floats(&mut self, value: &Value, list: &mut Vec<f32>) -> Result<(), FileError> {
        match value {
            Value::Bytes(range) => {
                let bytes = self.source.read(range.clone())?;
                let (floats, rest) = bytes.as_chunks::<4>();
                if !rest.is_empty() {
                    return Err(self.error(range.start, "whole floats of 4 bytes", bytes.len()));
                }
                list.extend(floats.iter().map(|float| f32::from_le_bytes(*float)));
                Ok(())
            }
            other => {
                list.push(self.float(other)?);
                Ok(())
            }
        }
    }

    /// One double, or a packed list of them, appended to `list`.
    pub(super) fn doubles(&mut self, value: &Value, list: &mut Vec<f64>) -> Result<(), FileError> {
        match value {
            Value::Bytes(range) => {
                let bytes = self.source.read(range.clone())?;
                let (doubles, rest) = bytes.as_chunks::<8>();
                if !rest.is_empty() {
                    return Err(self.error(range.start, "whole doubles of 8 bytes", bytes.len()));
                }
                list.extend(doubles.iter().map(|double| f64::from_le_bytes(*double)));
                Ok(())
            }
            Value::Fixed64(bits) => {
                list.push(f64::from_bits(*bits));
                Ok(())
            }
            other => Err(self.wrong("a double", other)),
        }
    }

    fn varint(&mut self, rest: &mut Range<u64>) -> Result<u64, FileError> {
        let at = rest.start;
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte(rest)?;
            // The tenth byte holds the one bit that is left.
            if shift == 63 && byte > 1 {
                return Err(self.error(at, "an integer of 64 bits", "a longer one"));
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.error(at, "an integer of at most 10 bytes", "a longer one"))
    }

    fn fixed(&mut self, rest: &mut Range<u64>, bytes: u32) -> Result<u64, FileError> {
        (0..bytes).try_fold(0, |value, index| Ok(value | u64::from(self.byte(rest)?) << (8 * index)))
    }

    fn byte(&mut self, rest: &mut Range<u64>) -> Result<u8, FileError> {
        if rest.start >= rest.end {
            return Err(self.error(rest.start, "more bytes", "the end of the message"));
        }
        let inside = rest.start.checked_sub(self.window_start).filter(|&at| at < self.window.len() as u64);
        let index = match inside {
            Some(index) => index as usize,
            None => {
                let end = self.source.length().min(rest.start.saturating_add(WINDOW));
                self.window = self.source.read(rest.start..end)?;
                self.window_start = rest.start;
                0
            }
        };
        rest.start += 1;
        match self.window.get(index) {
            Some(&byte) => Ok(byte),
            None => Err(self.error(rest.start, "more bytes", "the end of the file")),
        }
    }

    fn wrong(&self, expected: &str, found: &Value) -> FileError {
        let found = match found {
            Value::Varint(value) => format!("the integer {value}"),
            Value::Fixed32(_) => "four bytes".into(),
            Value::Fixed64(_) => "eight bytes".into(),
            Value::Bytes(range) => format!("{} bytes at {}", range.end - range.start, range.start),
        };
        self.source.malformed("a field", expected, found)
    }

    fn error(&self, at: u64, expected: impl std::fmt::Display, found: impl std::fmt::Display) -> FileError {
        self.source.malformed(format!("byte {at}"), expected, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn fields(bytes: &[u8]) -> Result<Vec<(u64, Value)>, String> {
        let mut reader = Reader::new(Source::memory(Path::new("m"), bytes.to_vec()));
        let mut rest = 0..bytes.len() as u64;
        let mut fields = Vec::new();
        while let Some(field) = reader.field(&mut rest).map_err(|error| error.to_string())? {
            fields.push(field);
        }
        Ok(fields)
    }

    #[test]
    fn every_wire_type_is_read() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 2, 7, 8, 0x1d, 0, 0, 0x80, 0x3f, 0x21, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            fields(&bytes).unwrap(),
            [
                (1, Value::Varint(150)),
                (2, Value::Bytes(5..7)),
                (3, Value::Fixed32(1f32.to_bits())),
                (4, Value::Fixed64(1)),
            ]
        );
    }

    #[test]
    fn what_is_cut_or_wrong_is_named_by_its_byte() {
        for (bytes, message) in [
            (&[0x08][..], "m: byte 1 must be more bytes"),
            (&[0x12, 5, 0], "m: byte 1 must be a field of at most the 1 bytes that are left"),
            (&[0x0b], "m: byte 0 must be a wire type"),
            (&[0x1d, 0, 0], "m: byte 3 must be more bytes"),
            (&[0xff; 12], "m: byte 0 must be an integer of"),
        ] {
            let error = fields(bytes).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
