//! Chat templates on crate minijinja, set up as Hugging Face's transformers sets up Jinja (chat
//! template utils: ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, loop controls,
//! tojson, raise_exception, strftime_now, the generation tag). A template is untrusted: no loader,
//! no include; fuel bounds its steps and its memory, and the output and the recursion are bounded
//! too.

use std::io::{self, Write};

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::abi::Failure;
use crate::calendar::Date;
use crate::template_keep::{self, Meter, METER};
use crate::template_source;
use crate::tojson::tojson;

const NAME: &str = "chat";
/// Fuel: one step, or 64 bytes made or read (minijinja, Environment::set_fuel). What any rendering
/// may use, and for each byte of input. The templates at hand need at most 400 a message.
const FUEL: u64 = 400_000;
const FUEL_PER_INPUT_BYTE: u64 = 16;
const RECURSION_MAX: usize = 200;
const FORMAT_DIGITS_MAX: usize = 4;
const EXCEPTION_CHARS_MAX: usize = 300;

pub struct Template {
    environment: Environment<'static>,
}

/// Filters that build lazily on each other or show the inside; no chat template at hand has them.
const REMOVED_FILTERS: [&str; 8] =
    ["batch", "chain", "groupby", "pprint", "slice", "sum", "urlencode", "zip"];

/// Strings that every rendering of a template sees.
pub struct Variables {
    pub bos_token: String,
    pub eos_token: String,
    pub date: Date,
}

impl Template {
    pub fn compile(source: &str, variables: Variables) -> Result<Template, Failure> {
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(|error| Failure::Internal(error.to_string()))?;
        let source = template_source::prepare(source, syntax.clone())?;
        let mut environment = Environment::new();
        environment.set_syntax(syntax);
        environment.set_recursion_limit(RECURSION_MAX);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_unknown_method_callback(method);
        for filter in REMOVED_FILTERS {
            environment.remove_filter(filter);
        }
        environment.remove_global("debug");
        environment.add_filter("tojson", tojson);
        environment.add_test("iterable", is_iterable);
        environment.add_filter("__keep", template_keep::keep);
        environment.add_filter("__keep_in", template_keep::keep_in);
        environment.add_filter("__factor", template_keep::factor);
        environment.add_function("namespace", template_keep::namespace);
        environment.add_function("raise_exception", raise_exception);
        let date = variables.date;
        environment.add_function("strftime_now", move |format: String| date.format(&format));
        environment.add_global("bos_token", variables.bos_token);
        environment.add_global("eos_token", variables.eos_token);
        environment.add_template_owned(NAME, source).map_err(|error| {
            let line = error.line().unwrap_or(0);
            Failure::Invalid(format!(
                "the chat template does not parse (line {line}): {}",
                cut(&error)
            ))
        })?;
        Ok(Template { environment })
    }

    /// `input_bytes` is the size of what the context was read from; the limits grow with it.
    pub fn render(
        &self,
        context: Value,
        input_bytes: usize,
        output_bytes_max: usize,
    ) -> Result<Vec<u8>, Failure> {
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(FUEL + FUEL_PER_INPUT_BYTE * input_bytes as u64));
        environment.add_global(METER, Value::from_object(Meter::new(input_bytes)));
        let template =
            environment.get_template(NAME).map_err(|error| Failure::Internal(error.to_string()))?;
        let mut output = Limited { bytes: Vec::new(), size_max: output_bytes_max, full: false };
        // Most templates write their input and little more.
        output.bytes.reserve(output_bytes_max.min(input_bytes));
        let rendered = template.render_captured_to(context, &mut output).map(|_| ());
        if output.full {
            return Err(Failure::Limit(format!(
                "the chat template writes more than {output_bytes_max} bytes"
            )));
        }
        rendered.map_err(failure)?;
        Ok(output.bytes)
    }
}

/// Python's methods of strings, lists and maps.
fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    // The crate's format fills to any width before it is paid for.
    let wide = name == "format" && value.as_str().is_some_and(has_long_number);
    if wide {
        return Err(Error::new(ErrorKind::InvalidOperation, "format: the width is too large"));
    }
    unknown_method_callback(state, value, name, args)
}

fn has_long_number(text: &str) -> bool {
    let mut digits = 0;
    text.bytes().any(|byte| {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        digits > FORMAT_DIGITS_MAX
    })
}

/// As in Python, where None is not; minijinja's own says that it is.
fn is_iterable(value: &Value) -> bool {
    !value.is_none() && value.try_iter().is_ok()
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message).with_source(Raised))
}

/// Marks an error as the template's own words.
#[derive(Debug)]
struct Raised;
impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("raised by the template")
    }
}
impl std::error::Error for Raised {}

fn is_raised(error: &Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if inner.is::<Raised>() {
            return true;
        }
        source = inner.source();
    }
    false
}

fn failure(error: Error) -> Failure {
    let words = cut(&error);
    if is_raised(&error) {
        return Failure::Invalid(words);
    }
    let recursion = words.contains("recursion limit");
    if error.kind() == ErrorKind::OutOfFuel || recursion {
        let what = if recursion { "recurses too deeply" } else { "takes too many steps" };
        return Failure::Limit(format!("the chat template {what}"));
    }
    let line = error.line().unwrap_or(0);
    Failure::Invalid(format!("the chat template fails on this input (line {line}): {words}"))
}

fn cut(error: &Error) -> String {
    let text = error.detail().map_or_else(|| error.kind().to_string(), str::to_string);
    text.chars().take(EXCEPTION_CHARS_MAX).collect()
}

/// Output with a maximum; writing past it fails.
struct Limited {
    bytes: Vec<u8>,
    size_max: usize,
    full: bool,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.size_max - self.bytes.len() {
            self.full = true;
            return Err(io::Error::other("the output is full"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
