//! The tojson filter as transformers defines it: Python's json.dumps with ensure_ascii off, ", "
//! and ": " between, keys in their order, an optional indent; no HTML escapes, unlike Jinja's own.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

const DEPTH_MAX: usize = 100;
const INDENT_MAX: usize = 64;

pub fn tojson(state: &State, value: Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<i64> = options.get("indent")?;
    let ascii: Option<bool> = options.get("ensure_ascii")?;
    let sort_keys: Option<bool> = options.get("sort_keys")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    options.assert_all_used()?;
    let indent = indent.map(|indent| indent.clamp(0, INDENT_MAX as i64) as usize);
    let default_item = if indent.is_some() { "," } else { ", " };
    let separator = |index: usize, default: &str| {
        let chosen = separators.as_ref().and_then(|pair| pair.get(index));
        chosen.cloned().unwrap_or_else(|| default.to_string())
    };
    let mut writer = Writer {
        state,
        out: String::new(),
        charged: 0,
        indent,
        ascii: ascii.unwrap_or(false),
        sort_keys: sort_keys.unwrap_or(false),
        item: separator(0, default_item),
        key: separator(1, ": "),
    };
    writer.value(&value, 0)?;
    Ok(Value::from_safe_string(writer.out))
}

struct Writer<'a, 'e, 's> {
    state: &'a State<'e, 's>,
    out: String,
    charged: usize,
    indent: Option<usize>,
    ascii: bool,
    sort_keys: bool,
    item: String,
    key: String,
}

impl Writer<'_, '_, '_> {
    /// Pays for what has been written since the last call.
    fn pay(&mut self) -> Result<(), Error> {
        let fresh = self.out.len() - self.charged;
        self.charged = self.out.len();
        self.state.consume_fuel(1 + fresh as u64 / 16)
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.pay()?;
        if depth > DEPTH_MAX {
            return Err(Error::new(ErrorKind::InvalidOperation, "tojson: nested too deeply"));
        }
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.out.push_str(&value.to_string()),
            ValueKind::String => self.text(value.as_str().unwrap_or_default()),
            ValueKind::Map => return self.map(value, depth),
            ValueKind::Seq | ValueKind::Iterable => return self.list(value, depth),
            kind => {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("tojson: a value of kind {kind} is not JSON serializable"),
                ))
            }
        }
        Ok(())
    }

    fn list(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('[');
        let mut empty = true;
        for item in value.try_iter()? {
            self.between(empty, depth + 1);
            self.value(&item, depth + 1)?;
            empty = false;
        }
        self.close(empty, depth, ']');
        Ok(())
    }

    fn map(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.sort_keys {
            keys.sort();
        }
        self.out.push('{');
        let mut empty = true;
        for key in keys {
            self.between(empty, depth + 1);
            match key.kind() {
                ValueKind::String => self.text(key.as_str().unwrap_or_default()),
                ValueKind::None => self.text("null"),
                ValueKind::Bool => self.text(if key.is_true() { "true" } else { "false" }),
                _ => self.text(&key.to_string()),
            }
            self.out.push_str(&self.key);
            self.value(&value.get_item(&key)?, depth + 1)?;
            empty = false;
        }
        self.close(empty, depth, '}');
        Ok(())
    }

    fn between(&mut self, first: bool, depth: usize) {
        if !first {
            self.out.push_str(&self.item);
        }
        self.line(depth);
    }

    fn close(&mut self, empty: bool, depth: usize, bracket: char) {
        if !empty {
            self.line(depth);
        }
        self.out.push(bracket);
    }

    fn line(&mut self, depth: usize) {
        if let Some(indent) = self.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if (c as u32) < 0x20 => self.out.push_str(&format!("\\u{:04x}", c as u32)),
                c if self.ascii && !c.is_ascii() => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        self.out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}
