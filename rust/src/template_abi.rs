//! The C functions of chat templates; their contract is in include/plumb_rust.h. Messages arrive as
//! JSON, since that is what a template sees them as.

use minijinja::Value;

use crate::abi::{guard, Failure, Owned, View};
use crate::calendar::Date;
use crate::template::{Template, Variables};

unsafe fn read_json(view: View, what: &str) -> Result<serde_json::Value, Failure> {
    serde_json::from_str(view.text(what)?)
        .map_err(|error| Failure::Invalid(format!("{what} are not JSON: {error}")))
}

/// JSON as template values, objects in their order. serde_json bounds the depth.
fn to_value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(flag) => Value::from(flag),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Value::from(integer),
            (None, float) => Value::from(float.unwrap_or_default()),
        },
        serde_json::Value::String(text) => Value::from(text),
        serde_json::Value::Array(items) => items.into_iter().map(to_value).collect(),
        serde_json::Value::Object(members) => {
            Value::from_pairs(members.into_iter().map(|(key, member)| (key, to_value(member))))
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn plumb_template_compile(
    source: View,
    variables: View,
    out: *mut *mut Template,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(std::ptr::null_mut());
    guard(error, || {
        let variables = read_json(variables, "the template's variables")?;
        let text = |name: &str| variables[name].as_str().unwrap_or_default().to_string();
        let variables = Variables {
            bos_token: text("bos_token"),
            eos_token: text("eos_token"),
            date: Date::parse(&text("date"))?,
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
pub unsafe extern "C" fn plumb_template_render(
    template: *const Template,
    context: View,
    output_bytes_max: usize,
    out: *mut Owned<u8>,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(Owned::empty());
    guard(error, || {
        let input_bytes = context.bytes().len();
        let context = to_value(read_json(context, "the messages")?);
        out.write(Owned::of((*template).render(context, input_bytes, output_bytes_max)?));
        Ok(())
    })
}
