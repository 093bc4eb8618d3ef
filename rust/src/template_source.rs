//! What is done to a template's source before it is compiled: Hugging Face's own tags, which only mark a
//! part for training, become tags that do nothing.

use regex::Regex;

use crate::abi::Failure;

/// `{% generation %}...{% endgeneration %}` renders its body; so does `{% if true %}`.
pub fn prepare(source: &str) -> Result<String, Failure> {
    let tag = |name: &str| {
        Regex::new(&format!(r"(\{{%[-+]?\s*){name}(\s*[-+]?%\}})"))
            .map_err(|error| Failure::Internal(error.to_string()))
    };
    let opened = tag("generation")?.replace_all(source, "${1}if true${2}");
    Ok(tag("endgeneration")?.replace_all(&opened, "${1}endif${2}").into_owned())
}
