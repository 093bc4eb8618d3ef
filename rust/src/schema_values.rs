//! The literals of a schema: numbers, constants and counts that can be enforced to the digit, and
//! formats as the texts they describe.

use serde_json::{json, Map, Number, Value};

use crate::abi::Failure;

/// Above, neighbouring whole numbers are one f64.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
/// Nearer to 0, a number is many digits of nothing.
const EXACT_MIN: f64 = 1e-15;
/// Of items, characters and members.
pub const COUNT_MAX: u64 = 100_000;
const DEPTH_MAX: usize = 64;
/// Its square fits 32 bits.
const COMMON_MAX: u16 = u16::MAX;

/// A number that survives the way through f64, whole ones as integers.
pub fn number(value: &Value) -> Result<Value, String> {
    let number = value.as_f64().ok_or("it must be a number")?;
    let size = number.abs();
    // Equal is the first that its neighbour rounds to.
    if size >= EXACT_MAX || (size != 0.0 && size < EXACT_MIN) {
        return Err(format!("the number {value} cannot be kept exactly"));
    }
    if number.fract() == 0.0 {
        return Ok(Value::Number(Number::from(number as i64)));
    }
    Ok(json!(number))
}

/// Whether a JSON string can hold `text` with the short escapes alone.
pub fn writable(text: &str) -> bool {
    text.chars().all(|c| !c.is_ascii_control() || "\n\r\t\x08\x0C".contains(c))
}

/// A constant, with its numbers as `number` has them.
pub fn literal(value: &Value, depth: usize) -> Result<Value, String> {
    if depth > DEPTH_MAX {
        return Err(format!("it is nested deeper than {DEPTH_MAX}"));
    }
    let checked = |text: &str| match writable(text) {
        true => Ok(text.to_string()),
        false => Err("a control character in a text has no short escape".to_string()),
    };
    Ok(match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::Number(_) => number(value)?,
        Value::String(text) => Value::String(checked(text)?),
        Value::Array(items) => {
            let items = items.iter().map(|item| literal(item, depth + 1));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(members) => {
            let mut out = Map::new();
            for (name, member) in members {
                out.insert(checked(name)?, literal(member, depth + 1)?);
            }
            Value::Object(out)
        }
    })
}

/// A whole number that is not below 0, also written as 2.0.
pub fn whole(value: &Value) -> Option<u64> {
    let number = value.as_f64()?;
    (number >= 0.0 && number.fract() == 0.0 && number < EXACT_MAX).then_some(number as u64)
}

/// All steps of a schema may meet in one number, whose common step llguidance computes in 32 bits
/// and does not check.
pub fn check_multiples(root: &Value) -> Result<(), Failure> {
    let mut steps = Vec::new();
    collect_multiples(root, &mut steps);
    if steps.len() < 2 {
        return Ok(());
    }
    let digits = |step: &f64| (0..10).find(|n| (step * 10f64.powi(*n)).fract() == 0.0);
    let scale = steps.iter().map(digits).try_fold(0, |most, n| Some(n?.max(most)));
    let mut common = 1u64;
    for step in &steps {
        let size = scale.map_or(0.0, |n| step * 10f64.powi(n));
        let fits = size.fract() == 0.0 && (1.0..f64::from(COMMON_MAX)).contains(&size);
        if fits {
            common = common / gcd(common, size as u64) * size as u64;
        }
        if !fits || common > u64::from(COMMON_MAX) {
            return Err(Failure::Unsupported(
                "several \"multipleOf\" in the schema cannot be enforced together: their common \
                 multiple has too many digits"
                    .into(),
            ));
        }
    }
    Ok(())
}

fn collect_multiples(value: &Value, steps: &mut Vec<f64>) {
    match value {
        Value::Object(members) => {
            steps.extend(members.get("multipleOf").and_then(Value::as_f64));
            members.values().for_each(|member| collect_multiples(member, steps));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_multiples(item, steps)),
        _ => {}
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

// RFC 3339, with the lengths of months and leap years; without leap seconds.
const LEAP_YEAR: &str =
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
const DAYS: &str = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])\
                    |(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
                    |02-(?:0[1-9]|1[0-9]|2[0-8])";
const TIME: &str = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]{1,9})?\
                    (?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
// A label has no hyphens in its third and fourth place: what stands behind them is another
// language (RFC 5891).
const LABEL: &str = "(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]?[a-zA-Z0-9])?\
                     |[a-zA-Z0-9][a-zA-Z0-9-]{2}[a-zA-Z0-9]\
                     |[a-zA-Z0-9][a-zA-Z0-9-](?:[a-zA-Z0-9][a-zA-Z0-9-]|-[a-zA-Z0-9])\
                     [a-zA-Z0-9-]{0,58}[a-zA-Z0-9])";

/// What a text in the format must match, in llguidance's terms.
pub fn format(name: &str) -> Option<Value> {
    let date = format!("(?:[0-9]{{4}}-(?:{DAYS})|{LEAP_YEAR}-02-29)");
    let whole = |pattern: String| json!({"pattern": format!("^(?:{pattern})$")});
    Some(match name {
        "date" => whole(date),
        "time" => whole(TIME.into()),
        "date-time" => whole(format!("{date}[tT]{TIME}")),
        "hostname" => {
            let mut schema = whole(format!("{LABEL}(?:[.]{LABEL})*"));
            schema["maxLength"] = json!(253);
            schema
        }
        "duration" | "email" | "ipv4" | "ipv6" | "uuid" | "uri" => json!({"format": name}),
        _ => return None,
    })
}

/// Bounds of numbers, as (keyword, value), wherever they stand.
fn bounds<'a>(schema: &'a Value, found: &mut Vec<(&'a str, f64)>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| bounds(item, found)),
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value.as_f64()) {
                    ("enum" | "const" | "default" | "examples", _) => {}
                    ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", Some(v)) => {
                        found.push((name, v));
                    }
                    _ => bounds(value, found),
                }
            }
        }
        _ => {}
    }
}

/// llguidance 1.9.1 takes the bound itself where it is a whole number that is excluded and the
/// other bound is less than one away. Two of them may come together from anywhere in a schema, so
/// every such pair is refused.
pub fn check_bounds(schema: &Value) -> Result<(), Failure> {
    let mut found = Vec::new();
    bounds(schema, &mut found);
    let mut values: Vec<f64> = found.iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    for (keyword, value) in found {
        if !keyword.starts_with("exclusive") || value.fract() != 0.0 {
            continue;
        }
        let at = values.partition_point(|other| *other < value);
        let below = at.checked_sub(1).map(|at| values[at]);
        let above = values.get(at + 1).copied();
        let close = |other: Option<f64>| other.is_some_and(|other| (other - value).abs() < 1.0);
        if close(below) || close(above) {
            return Err(Failure::Unsupported(format!(
                "{keyword} {value} cannot be enforced beside another bound less than 1 away"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_know_their_months_and_years() {
        let pattern = format("date").unwrap()["pattern"].as_str().unwrap().to_string();
        let date = regex::Regex::new(&pattern).unwrap();
        for good in ["2024-02-29", "2000-02-29", "2023-02-28", "2023-12-31", "2023-04-30"] {
            assert!(date.is_match(good), "{good}");
        }
        for bad in
            ["2023-02-29", "1900-02-29", "2023-04-31", "2023-13-01", "2023-00-10", "23-01-01"]
        {
            assert!(!date.is_match(bad), "{bad}");
        }
    }

    #[test]
    fn numbers_are_exact_or_refused() {
        assert_eq!(number(&json!(5.0)).unwrap(), json!(5));
        assert_eq!(number(&json!(0.1)).unwrap(), json!(0.1));
        assert!(number(&json!(9007199254740993u64)).is_err());
        assert!(number(&json!(1e-300)).is_err());
        assert_eq!(whole(&json!(2.0)), Some(2));
        assert_eq!(whole(&json!(-1)), None);
    }

    #[test]
    fn common_multiples_stay_in_bounds() {
        assert!(check_multiples(&json!({"multipleOf": 0.0001})).is_ok());
        assert!(
            check_multiples(&json!({"allOf": [{"multipleOf": 2}, {"multipleOf": 0.3}]})).is_ok()
        );
        assert!(check_multiples(&json!([{"multipleOf": 65521}, {"multipleOf": 65519}])).is_err());
    }

    #[test]
    fn control_characters_need_a_short_escape() {
        assert!(writable("a\n\t\u{e9}"));
        assert!(!writable("a\u{0}") && !writable("\u{7f}") && !writable("\u{1b}"));
    }
}
