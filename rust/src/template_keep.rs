//! The filters that every named value of a template passes (template_source puts them there). They
//! bound what minijinja's fuel does not see: how deep a value is (printing, comparing and freeing
//! recurse), how large it is written out when parts of it are shared, and lists computed lazily
//! from each other.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use minijinja::value::{ArgType, Object, ObjectRepr, Tuple, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State, Value};

const DEPTH_MAX: usize = 32;
const NODES_MAX: usize = 1 << 18;
/// Text inside a list or map, in bytes: what any template may hold, and for each byte of input.
const TEXT_MAX: usize = 1 << 20;
const TEXT_PER_INPUT_BYTE: usize = 2;
/// Working on one text costs steps by its size only in part (indexing and comparing are free), so
/// the longest text so far makes every later naming dearer: 1 fuel for so many bytes.
const TEXT_BYTES_PER_FUEL: usize = 1 << 16;

/// The context's variable that holds the rendering's Meter.
pub const METER: &str = "__meter";

/// What one rendering has seen.
#[derive(Debug)]
pub struct Meter {
    input_bytes: usize,
    longest_text: AtomicUsize,
}

impl Object for Meter {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
}

impl Meter {
    pub fn new(input_bytes: usize) -> Self {
        Meter { input_bytes, longest_text: AtomicUsize::new(0) }
    }
}

/// `{% set x = E %}`: a namespace, macro or loop object may get a name, but not inside a container.
pub fn keep(state: &State, value: Value) -> Result<Value, Error> {
    match value.as_object() {
        Some(object) if is_special(&value, object.repr()) => Ok(value),
        _ => Walk::new(state).checked(value),
    }
}

/// `{% set ns.x = E %}`: no namespace inside a namespace, or it could hold itself.
pub fn keep_in(state: &State, value: Value) -> Result<Value, Error> {
    Walk::new(state).checked(value)
}

/// A side of a product.
pub fn factor(value: Value) -> Result<Value, Error> {
    if value.as_object().is_some() {
        let what = "only numbers and texts can be multiplied";
        return Err(Error::new(ErrorKind::InvalidOperation, what));
    }
    Ok(value)
}

/// The function namespace, with its values kept.
pub fn namespace(state: &State, values: Option<ValueOrKwargs>) -> Result<Value, Error> {
    let Some(values) = values else {
        return minijinja::functions::namespace(None);
    };
    let kept = keep_in(state, values.into_value())?;
    minijinja::functions::namespace(Some(ValueOrKwargs::from_value(Some(&kept))?))
}

fn is_special(value: &Value, repr: ObjectRepr) -> bool {
    let Some(object) = value.as_object() else {
        return false;
    };
    let name = object.type_name();
    repr == ObjectRepr::Plain
        || ["Namespace", "Loop", "Macro"]
            .iter()
            .any(|special| name.rsplit("::").next().is_some_and(|last| last.starts_with(special)))
}

struct Walk<'a, 'e, 's> {
    state: &'a State<'e, 's>,
    nodes: usize,
    text: usize,
    longest: usize,
    text_max: usize,
}

impl<'a, 'e, 's> Walk<'a, 'e, 's> {
    fn new(state: &'a State<'e, 's>) -> Self {
        Walk { state, nodes: 0, text: 0, longest: 0, text_max: 0 }
    }

    fn checked(&mut self, value: Value) -> Result<Value, Error> {
        let meter = self.state.lookup(METER).unwrap_or_default();
        let meter = meter.downcast_object_ref::<Meter>().ok_or_else(|| {
            Error::new(ErrorKind::InvalidOperation, "the template hides a name that is reserved")
        })?;
        self.text_max = TEXT_MAX + TEXT_PER_INPUT_BYTE * meter.input_bytes;
        let kept = self.value(&value, 0)?;
        let before = meter.longest_text.fetch_max(self.longest, Relaxed);
        let longest = before.max(self.longest);
        let cost = self.nodes / 8 + longest / TEXT_BYTES_PER_FUEL;
        self.state.consume_fuel(cost as u64)?;
        Ok(kept.unwrap_or(value))
    }

    /// The value to hold in place of this one; None = itself.
    fn value(&mut self, value: &Value, depth: usize) -> Result<Option<Value>, Error> {
        self.nodes += 1;
        let size = value.as_str().map_or(0, str::len);
        self.longest = self.longest.max(size);
        if depth > 0 {
            self.text += size;
        }
        if depth > DEPTH_MAX || self.nodes > NODES_MAX || self.text > self.text_max {
            return Err(Error::new(ErrorKind::OutOfFuel, "a value is too deep or too large"));
        }
        let Some(object) = value.as_object() else {
            return Ok(None);
        };
        let repr = object.repr();
        if is_special(value, repr) {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "a namespace, macro or loop cannot be part of another value",
            ));
        }
        match repr {
            ObjectRepr::Map => self.map(value, depth),
            _ => self.list(value, depth),
        }
    }

    fn list(&mut self, value: &Value, depth: usize) -> Result<Option<Value>, Error> {
        let plain = value.downcast_object_ref::<Vec<Value>>().is_some();
        let mut changed = !plain && value.downcast_object_ref::<Tuple>().is_none();
        let mut items = Vec::new();
        for item in value.try_iter()? {
            let kept = self.value(&item, depth + 1)?;
            changed |= kept.is_some();
            items.push(kept.unwrap_or(item));
        }
        Ok(changed.then(|| Value::from(items)))
    }

    fn map(&mut self, value: &Value, depth: usize) -> Result<Option<Value>, Error> {
        let mut changed = false;
        let mut pairs = Vec::new();
        for key in value.try_iter()? {
            let item = value.get_item(&key)?;
            self.text += key.as_str().map_or(0, str::len);
            let kept = self.value(&item, depth + 1)?;
            changed |= kept.is_some();
            pairs.push((key, kept.unwrap_or(item)));
        }
        Ok(changed.then(|| Value::from_pairs(pairs)))
    }
}
