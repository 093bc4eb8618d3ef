//! What a caller's Lark grammar must not use: parts of llguidance's dialect that would bring in
//! unchecked sources (%json, %lark, @grammar), change how the whole grammar is read (%llguidance),
//! name tokens of the model, or ask for what the engine does not do (temperature, stop). Strings,
//! regular expressions and comments are skipped as llguidance's lexer reads them.

use crate::abi::Failure;

const DIRECTIVES: [&str; 5] = ["%json", "%lark", "%llguidance", "%override", "%declare"];
const ATTRIBUTES: [&str; 4] = ["temperature", "max_tokens", "stop", "stop_capture"];

fn refuse(what: &str, line: usize) -> Failure {
    Failure::Unsupported(format!("{what} in line {line} of the grammar is not taken here"))
}

fn unclosed(what: &str, line: usize) -> Failure {
    Failure::Invalid(format!("{what} begun in line {line} of the grammar is not closed"))
}

/// The bytes up to and with the closing `quote`, from behind the opening one.
fn quoted(bytes: &[u8], quote: u8) -> Option<usize> {
    let mut index = 0;
    while index < bytes.len() {
        match bytes[index] {
            b'\\' => index += 2,
            byte if byte == quote => return Some(index + 1),
            _ => index += 1,
        }
    }
    None
}

pub fn check(source: &str) -> Result<(), Failure> {
    let bytes = source.as_bytes();
    let mut index = 0;
    while index < bytes.len() {
        let rest = &bytes[index..];
        let line = || bytes[..index].iter().filter(|byte| **byte == b'\n').count() + 1;
        index += match rest[0] {
            b'#' => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
            b'/' if rest.get(1) == Some(&b'/') => {
                rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
            }
            b'/' => {
                1 + quoted(&rest[1..], b'/')
                    .ok_or_else(|| unclosed("a regular expression", line()))?
            }
            b'"' => 1 + quoted(&rest[1..], b'"').ok_or_else(|| unclosed("a string", line()))?,
            b'<' => return Err(refuse("a token of the model (<...>)", line())),
            b'@' => return Err(refuse("a reference to another grammar (@...)", line())),
            b'%' => {
                if let Some(name) = DIRECTIVES.iter().find(|name| rest.starts_with(name.as_bytes()))
                {
                    return Err(refuse(name, line()));
                }
                1
            }
            byte if byte == b'_' || byte.is_ascii_alphabetic() => {
                let is_word =
                    |byte: &u8| *byte == b'_' || *byte == b'-' || byte.is_ascii_alphanumeric();
                let size = rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len());
                let after = rest[size..].iter().find(|byte| !matches!(byte, b' ' | b'\t'));
                let word = &source[index..index + size];
                if after == Some(&b'=') && ATTRIBUTES.contains(&word) {
                    return Err(refuse(&format!("the attribute {word}"), line()));
                }
                size
            }
            _ => 1,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn refuses_what_brings_in_more() {
        for source in [
            "start: %json {\"type\": \"object\"}",
            "start: x\nx: @other",
            "start: <|im_end|>",
            "start: <[5]>",
            "%llguidance {\"no_forcing\": true}\nstart: \"a\"",
            "start[temperature=0.5]: \"a\"",
            "x[max_tokens = 3]: /a/",
            "start: %lark { start: \"a\" }",
            "start: /a",
            "start: \"a",
        ] {
            assert!(check(source).is_err(), "{source}");
        }
    }

    #[test]
    fn leaves_texts_alone() {
        for source in [
            "start: \"<b>\" /@%json[<]/ // <x> @y\n# %llguidance",
            "start: x \"\\\"@\"\nx[lazy]: /[a-z]+/\n%ignore \" \"\n%import common.INT",
            "stop: \"a\"\nstart: stop",
        ] {
            assert!(check(source).is_ok(), "{source}");
        }
    }
}
