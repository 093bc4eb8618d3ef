//! The C functions of chat templates; their contract is in include/plumb_rust.h. What a template
//! sees arrives as values written flat, whose texts lie where the caller has them: long
//! conversations are copied once.

use minijinja::Value;

use crate::abi::{guard, slice, Failure, Owned, View};
use crate::calendar::Date;
use crate::template::{Template, Variables};

#[repr(C)]
pub struct VariableViews {
    bos_token: View,
    eos_token: View,
    date: View,
}

/// plumb_value; `payload` is an integer, the bits of a double, or a count.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FlatValue {
    kind: u8,
    text: View,
    payload: u64,
}

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INTEGER: u8 = 3;
const DOUBLE: u8 = 4;
const TEXT: u8 = 5;
const LIST: u8 = 6;
const OBJECT: u8 = 7;

/// Deeper than our callers' JSON, whose parser bounds it (OrderedJson::kDepthMax and what is around
/// it).
const DEPTH_MAX: usize = 128;
/// What a value takes in JSON besides its text: brackets, or quotes and a comma. The limits of a
/// rendering grow with the bytes of its input.
const VALUE_BYTES: usize = 3;

struct Reader<'a> {
    values: std::slice::Iter<'a, FlatValue>,
    bytes: usize, // of what has been read
}

impl Reader<'_> {
    /// # Safety
    /// The texts of all values must live for the call.
    unsafe fn value(&mut self, depth: usize) -> Result<Value, Failure> {
        let broken = |what: &str| Failure::Internal(format!("the template's values {what}"));
        if depth > DEPTH_MAX {
            return Err(broken("are nested too deeply"));
        }
        let flat = *self.values.next().ok_or_else(|| broken("end too soon"))?;
        self.bytes += VALUE_BYTES;
        Ok(match flat.kind {
            NULL => Value::from(()),
            FALSE | TRUE => Value::from(flat.kind == TRUE),
            INTEGER => Value::from(flat.payload as i64),
            DOUBLE => Value::from(f64::from_bits(flat.payload)),
            TEXT => Value::from(self.text(flat)?),
            LIST => {
                let mut items = Vec::with_capacity(self.room(flat));
                for _ in 0..flat.payload {
                    items.push(self.value(depth + 1)?);
                }
                Value::from(items)
            }
            OBJECT => {
                let mut members = Vec::with_capacity(self.room(flat));
                for _ in 0..flat.payload {
                    let name = self.value(depth + 1)?;
                    members.push((name, self.value(depth + 1)?));
                }
                Value::from_pairs(members)
            }
            _ => return Err(broken("have an unknown kind")),
        })
    }

    unsafe fn text<'b>(&mut self, flat: FlatValue) -> Result<&'b str, Failure> {
        let text = flat.text.text("a text of the messages")?;
        self.bytes += text.len();
        Ok(text)
    }

    /// No count makes us set aside more than there can be.
    fn room(&self, flat: FlatValue) -> usize {
        self.values.len().min(flat.payload as usize)
    }
}

#[no_mangle]
pub unsafe extern "C" fn plumb_template_compile(
    source: View,
    variables: VariableViews,
    out: *mut *mut Template,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(std::ptr::null_mut());
    guard(error, || {
        let variables = Variables {
            bos_token: variables.bos_token.text("the BOS token")?.to_string(),
            eos_token: variables.eos_token.text("the EOS token")?.to_string(),
            date: Date::parse(variables.date.text("the date")?)?,
        };
        let template = Template::compile(source.text("the chat template")?, variables)?;
        out.write(Box::into_raw(Box::new(template)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_template_free(template: *mut Template) {
    if !template.is_null() {
        drop(Box::from_raw(template));
    }
}

#[no_mangle]
pub unsafe extern "C" fn plumb_template_render_values(
    template: *const Template,
    values: *const FlatValue,
    count: usize,
    output_bytes_max: usize,
    out: *mut Owned<u8>,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(Owned::empty());
    guard(error, || {
        let mut reader = Reader { values: slice(values, count).iter(), bytes: 0 };
        let context = reader.value(0)?;
        let rendered = (*template).render(context, reader.bytes, output_bytes_max)?;
        out.write(Owned::of(rendered));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(kind: u8, text: &'static str, payload: u64) -> FlatValue {
        FlatValue { kind, text: View::of(text.as_bytes()), payload }
    }

    fn read(values: &[FlatValue]) -> Result<(String, usize), Failure> {
        let mut reader = Reader { values: values.iter(), bytes: 0 };
        let value = unsafe { reader.value(0) }?;
        Ok((value.to_string(), reader.bytes))
    }

    #[test]
    fn reads_every_kind_in_order() {
        let values = [
            flat(OBJECT, "", 3),
            flat(TEXT, "b", 0),
            flat(LIST, "", 5),
            flat(NULL, "", 0),
            flat(TRUE, "", 0),
            flat(FALSE, "", 0),
            flat(INTEGER, "", -7i64 as u64),
            flat(DOUBLE, "", 0.5f64.to_bits()),
            flat(TEXT, "a", 0),
            flat(LIST, "", 0),
            flat(TEXT, "b", 0), // once more: the last value in the first place
            flat(TEXT, "가", 0),
        ];
        let (text, bytes) = read(&values).unwrap();
        assert_eq!(text, "{'b': '가', 'a': []}");
        assert_eq!(bytes, 12 * VALUE_BYTES + 6);
        let (list, _) = read(&values[2..8]).unwrap();
        assert_eq!(list, "[None, True, False, -7, 0.5]");
    }

    #[test]
    fn refuses_what_is_not_whole() {
        let deep = vec![flat(LIST, "", 1); 1000];
        let long = [flat(LIST, "", u64::MAX), flat(NULL, "", 0)];
        let invalid = [FlatValue { kind: TEXT, text: View::of(b"\xff"), payload: 0 }];
        for values in [&deep[..], &long[..], &[flat(8, "", 0)][..], &[][..]] {
            assert!(matches!(read(values), Err(Failure::Internal(_))));
        }
        assert!(matches!(read(&invalid), Err(Failure::Invalid(_))));
    }
}
