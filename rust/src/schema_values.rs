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
/// Of the step of a multipleOf: with them, what llguidance computes along a number fits 32 bits.
const DIGITS_MAX: u64 = 300_000_000;
const DECIMALS_MAX: usize = 8;
/// As many decimals as a number has that is kept exactly.
const SCALE_DIGITS: u32 = 15;

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

/// A step as digits and how many of them are decimals.
fn decimal(step: f64) -> Option<(u64, u32)> {
    let text = step.to_string(); // the shortest that reads as this number, without exponent
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let digits = format!("{whole}{decimals}").parse::<u64>().ok()?;
    let few = digits <= DIGITS_MAX && decimals.len() <= DECIMALS_MAX;
    few.then_some((digits, decimals.len() as u32))
}

fn product_fits(a: u64, b: u64) -> bool {
    a.checked_mul(b).is_some_and(|product| product <= u64::from(u32::MAX))
}

/// The step of a multipleOf, then for each smaller number of decimals the least multiple of it that
/// has no more, where llguidance (1.9.1) would not take such a multiple by the step itself.
pub fn steps(value: &Value) -> Result<Vec<Value>, String> {
    let step = number(value)?;
    let many = || "it has too many digits".to_string();
    let (digits, decimals) = step.as_f64().and_then(decimal).ok_or_else(many)?;
    let mut out = vec![step];
    if digits < 10 {
        return Ok(out); // its decimals need not be written
    }
    for fewer in (0..decimals).rev() {
        let power = 10u64.pow(decimals - fewer);
        let coarse = digits * (power / gcd(digits, power));
        // llguidance multiplies two of them where a schema meets itself.
        if !product_fits(digits, coarse) {
            return Err(many());
        }
        let coarse = number(&json!(coarse as f64 / 10f64.powi(decimals as i32)))?;
        if out.last() != Some(&coarse) {
            out.push(coarse);
        }
    }
    Ok(out)
}

/// All steps of a schema may meet in one number, whose common step llguidance computes in 32 bits
/// and does not check.
pub fn check_multiples(root: &Value) -> Result<(), Failure> {
    let mut found = Vec::new();
    collect_multiples(root, &mut found);
    if found.len() < 2 {
        return Ok(());
    }
    let all: Option<Vec<(u64, u32)>> = found
        .iter()
        .flat_map(|step| steps(step).unwrap_or_default()) // else refused where it stands
        .map(|step| step.as_f64().and_then(decimal))
        .collect();
    let common = all.and_then(|all| {
        let scale = all.iter().map(|(_, decimals)| *decimals).max()?;
        let sizes = all.iter().map(|(digits, decimals)| digits * 10u64.pow(scale - decimals));
        let common = sizes
            .clone()
            .try_fold(1u64, |common, size| (common / gcd(common, size)).checked_mul(size))?;
        (common <= DIGITS_MAX && product_fits(common, sizes.max()?)).then_some(common)
    });
    match common {
        Some(_) => Ok(()),
        None => Err(Failure::Unsupported(
            "several \"multipleOf\" in the schema cannot be enforced together: their common \
             multiple has too many digits"
                .into(),
        )),
    }
}

/// A number times 10^15, if that is exact.
fn scaled(number: f64) -> Option<i128> {
    let text = number.to_string();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let digits = format!("{whole}{decimals}").parse::<i128>().ok()?;
    let missing = SCALE_DIGITS.checked_sub(decimals.len() as u32)?;
    digits.checked_mul(10i128.pow(missing))
}

/// Whether no number is between the bounds that a schema states, by its step if it has one. Such a
/// number would be begun and never ended, since llguidance does not look for it.
pub fn no_number(members: &Map<String, Value>) -> bool {
    let get = |keyword: &str| members.get(keyword).and_then(Value::as_f64);
    let whole = members.get("type").is_some_and(|name| name == "integer");
    let one = 10i128.pow(SCALE_DIGITS);
    let step = match (get("multipleOf").map(scaled), whole) {
        (Some(Some(step)), false) if step > 0 => Some(step),
        (Some(Some(step)), true) if step > 0 => {
            let (mut a, mut b) = (step, one);
            while b != 0 {
                (a, b) = (b, a % b);
            }
            (step / a).checked_mul(one)
        }
        (None, true) => Some(one),
        _ => None,
    };
    let Some(step) = step else { return false };
    let up = |number: i128| -(-number).div_euclid(step) * step;
    let down = |number: i128| number.div_euclid(step) * step;
    let bound = |keyword: &str| get(keyword).and_then(scaled);
    let least = [bound("minimum").map(up), bound("exclusiveMinimum").map(|low| down(low) + step)];
    let most = [bound("maximum").map(down), bound("exclusiveMaximum").map(|high| up(high) - step)];
    match (least.into_iter().flatten().max(), most.into_iter().flatten().min()) {
        (Some(least), Some(most)) => least > most,
        _ => false,
    }
}

fn collect_multiples(value: &Value, steps: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            steps.extend(members.get("multipleOf").filter(|step| step.is_number()).cloned());
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
    fn steps_have_coarser_ones_where_decimals_may_be_left_out() {
        let of = |step: Value| steps(&step).map(Value::Array);
        assert_eq!(of(json!(0.25)).unwrap(), json!([0.25, 0.5, 1]));
        assert_eq!(of(json!(0.125)).unwrap(), json!([0.125, 0.25, 0.5, 1]));
        assert_eq!(of(json!(1.5)).unwrap(), json!([1.5, 3]));
        assert_eq!(of(json!(0.015)).unwrap(), json!([0.015, 0.03, 0.3, 3]));
        assert_eq!(of(json!(0.01)).unwrap(), json!([0.01]));
        assert_eq!(of(json!(12)).unwrap(), json!([12]));
        assert_eq!(of(json!(1e-8)).unwrap(), json!([1e-8]));
        for many in [json!(0.123456789), json!(1e-9), json!(400_000_000), json!(0.001234)] {
            assert!(of(many.clone()).is_err(), "{many}");
        }
    }

    #[test]
    fn tells_where_no_number_is() {
        let none = |schema: Value| no_number(schema.as_object().unwrap());
        for schema in [
            json!({"type": "integer", "minimum": 1, "maximum": 5, "multipleOf": 7}),
            json!({"type": "number", "minimum": 0.3, "maximum": 0.4, "multipleOf": 0.25}),
            json!({"exclusiveMinimum": -1, "exclusiveMaximum": -0.5, "multipleOf": 0.5}),
            json!({"type": "integer", "minimum": 1.2, "maximum": 1.8}),
            json!({"type": "integer", "minimum": 1, "maximum": 4, "multipleOf": 2.5}),
            json!({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 4}),
        ] {
            assert!(none(schema.clone()), "{schema}");
        }
        for schema in [
            json!({"type": "integer", "minimum": 1, "maximum": 7, "multipleOf": 7}),
            json!({"type": "integer", "minimum": -7, "maximum": -6, "multipleOf": 7}),
            json!({"type": "number", "minimum": 0.3, "maximum": 0.5, "multipleOf": 0.25}),
            json!({"type": "integer", "minimum": 1, "maximum": 5, "multipleOf": 2.5}),
            json!({"type": "number", "minimum": 1.2, "maximum": 1.8}),
            json!({"minimum": 5, "multipleOf": 7}),
            json!({"minimum": -0.1, "maximum": 0.1, "multipleOf": 3}),
        ] {
            assert!(!none(schema.clone()), "{schema}");
        }
    }

    #[test]
    fn control_characters_need_a_short_escape() {
        assert!(writable("a\n\t\u{e9}"));
        assert!(!writable("a\u{0}") && !writable("\u{7f}") && !writable("\u{1b}"));
    }
}
