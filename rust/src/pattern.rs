//! Regular expressions as JSON Schema has them (ECMA-262, without the v flag) in the syntax of the
//! crate `regex`, for the part of the language where both describe a set of texts. What Rust would
//! read otherwise is rewritten; what is no regular language (look-around, back references) or not
//! the same in both is refused by name.

use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

use llguidance::derivre::{RegexAst, RegexBuilder};

/// ECMA-262's WhiteSpace and LineTerminator, inside a class.
const SPACE: &str = concat!(
    r"\x{9}-\x{D}\x{20}\x{A0}\x{1680}\x{2000}-\x{200A}",
    r"\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}",
);
const DIGIT: &str = "0-9";
const WORD: &str = "A-Za-z0-9_";
const REPEAT_MAX: u32 = 65_535;
const DEPTH_MAX: usize = 64;

struct Translator<'a> {
    input: Peekable<Chars<'a>>,
    out: String,
    depth: usize,
}

/// What an escape stands for.
enum Escape {
    Char(char),
    Set(String), // inside a class
}

fn literal(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() || c == '_' {
        out.push(c);
    } else {
        write!(out, "\\x{{{:X}}}", c as u32).expect("a String takes all");
    }
}

impl Translator<'_> {
    fn hex(&mut self, digits: usize) -> Result<u32, String> {
        let mut value = 0;
        for _ in 0..digits {
            let digit = self.input.next().and_then(|c| c.to_digit(16));
            value = value * 16 + digit.ok_or("an escape lacks hexadecimal digits")?;
        }
        Ok(value)
    }

    // After "\u".
    fn unicode(&mut self) -> Result<char, String> {
        let mut code = 0;
        if self.input.peek() == Some(&'{') {
            self.input.next();
            loop {
                match self.input.next() {
                    Some('}') => break,
                    Some(c) if c.is_ascii_hexdigit() && code <= 0x10FFFF => {
                        code = code * 16 + c.to_digit(16).unwrap_or_default();
                    }
                    _ => return Err(r"\u{...} holds no character".into()),
                }
            }
        } else {
            code = self.hex(4)?;
            let high = (0xD800..0xDC00).contains(&code);
            if high && self.input.next() == Some('\\') && self.input.next() == Some('u') {
                let low = self.hex(4)?;
                if (0xDC00..0xE000).contains(&low) {
                    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                }
            }
        }
        char::from_u32(code).ok_or_else(|| "half of a surrogate pair is no character".into())
    }

    // After "\p" or "\P".
    fn property(&mut self, letter: char) -> Result<Escape, String> {
        let mut name = String::new();
        if self.input.next() != Some('{') {
            return Err(format!("\\{letter} without {{name}}"));
        }
        for c in self.input.by_ref() {
            match c {
                '}' => return Ok(Escape::Set(format!("\\{letter}{{{name}}}"))),
                c if (c.is_ascii_alphanumeric() || c == '_' || c == '=') && name.len() < 64 => {
                    name.push(c);
                }
                _ => break,
            }
        }
        Err(format!("\\{letter}{{...}} names no property"))
    }

    // After "\".
    fn escape(&mut self, in_class: bool) -> Result<Escape, String> {
        let c = self.input.next().ok_or("it ends in a backslash")?;
        Ok(match c {
            'd' => Escape::Set(DIGIT.into()),
            'w' => Escape::Set(WORD.into()),
            's' => Escape::Set(SPACE.into()),
            'D' => Escape::Set(format!("[^{DIGIT}]")),
            'W' => Escape::Set(format!("[^{WORD}]")),
            'S' => Escape::Set(format!("[^{SPACE}]")),
            'n' => Escape::Char('\n'),
            'r' => Escape::Char('\r'),
            't' => Escape::Char('\t'),
            'v' => Escape::Char('\x0B'),
            'f' => Escape::Char('\x0C'),
            'b' if in_class => Escape::Char('\x08'),
            'x' => Escape::Char(char::from(self.hex(2)? as u8)),
            'u' => Escape::Char(self.unicode()?),
            'p' | 'P' => self.property(c)?,
            'c' => match self.input.next() {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    Escape::Char(char::from(letter as u8 % 32))
                }
                _ => return Err(r"\c without a letter".into()),
            },
            '0' if !self.input.peek().is_some_and(char::is_ascii_digit) => Escape::Char('\0'),
            'b' | 'B' => return Err(format!("\\{c} (word boundary) is not supported")),
            'k' | '0'..='9' => return Err("back references are not supported".into()),
            c if c.is_ascii_alphabetic() => return Err(format!("\\{c} is no escape")),
            c => Escape::Char(c),
        })
    }

    // After "[".
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.input.peek() == Some(&'^') {
            self.input.next();
            self.out.push('^');
        }
        if self.input.peek() == Some(&']') {
            return Err("an empty class ([] or [^]) is not supported".into());
        }
        loop {
            match self.input.next().ok_or("a class is not closed")? {
                ']' => break,
                '\\' => match self.escape(true)? {
                    Escape::Char(c) => literal(&mut self.out, c),
                    Escape::Set(set) => {
                        self.out.push_str(&set);
                        // "[\w-.]": after a set the dash is a character.
                        if self.input.peek() == Some(&'-') {
                            self.input.next();
                            literal(&mut self.out, '-');
                        }
                    }
                },
                '-' => {
                    // First, last, or between the ends of a range.
                    let first = self.out.ends_with('[') || self.out.ends_with("[^");
                    match self.input.peek() {
                        Some(']') => literal(&mut self.out, '-'),
                        _ if first => literal(&mut self.out, '-'),
                        _ => self.out.push('-'),
                    }
                }
                c => literal(&mut self.out, c),
            }
        }
        self.out.push(']');
        Ok(())
    }

    // After "(".
    fn group(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("groups are nested deeper than {DEPTH_MAX}"));
        }
        self.out.push_str("(?:");
        if self.input.peek() != Some(&'?') {
            return Ok(());
        }
        self.input.next();
        match self.input.next() {
            Some(':') => Ok(()),
            Some('=' | '!') => Err("look-ahead is not supported".into()),
            Some('<') => match self.input.peek() {
                Some('=' | '!') => Err("look-behind is not supported".into()),
                _ => match self.input.by_ref().take(64).find(|c| *c == '>') {
                    Some(_) => Ok(()),
                    None => Err("the name of a group is not closed".into()),
                },
            },
            _ => Err("a group begins with (? and no known sign".into()),
        }
    }

    fn number(&mut self) -> Option<u32> {
        let mut value = None;
        while let Some(digit) = self.input.peek().and_then(|c| c.to_digit(10)) {
            self.input.next();
            value = Some(value.unwrap_or(0u32).saturating_mul(10).saturating_add(digit));
        }
        value
    }

    // After "{".
    fn repeat(&mut self) -> Result<(), String> {
        let least = self.number().ok_or("{ stands for no repetition; write \\{ for the sign")?;
        let mut most = Some(least);
        if self.input.peek() == Some(&',') {
            self.input.next();
            most = self.number();
        }
        if self.input.next() != Some('}') {
            return Err("a repetition {...} is not closed".into());
        }
        if least > REPEAT_MAX || most.is_some_and(|most| most > REPEAT_MAX || most < least) {
            return Err(format!("a repetition must be in order and at most {REPEAT_MAX}"));
        }
        let most = most.map_or(String::new(), |most| most.to_string());
        write!(self.out, "{{{least},{most}}}").expect("a String takes all");
        self.lazy();
        Ok(())
    }

    // Laziness does not change which texts match.
    fn lazy(&mut self) {
        if self.input.peek() == Some(&'?') {
            self.input.next();
        }
    }

    fn run(mut self) -> Result<String, String> {
        let mut atom = false; // something that may be repeated stands before
        while let Some(c) = self.input.next() {
            if matches!(c, '{' | '*' | '+' | '?') && !atom {
                return Err(format!("there is nothing before {c} to repeat"));
            }
            atom = !matches!(c, '{' | '*' | '+' | '?' | '(' | '|' | '^' | '$');
            match c {
                '\\' => match self.escape(false)? {
                    Escape::Char(c) => literal(&mut self.out, c),
                    Escape::Set(set) => write!(self.out, "[{set}]").expect("a String takes all"),
                },
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    self.depth = self.depth.checked_sub(1).ok_or("a ) closes nothing")?;
                    self.out.push(')');
                }
                '{' => self.repeat()?,
                '*' | '+' | '?' => {
                    self.out.push(c);
                    self.lazy();
                }
                '.' => self.out.push_str(r"[^\x{A}\x{D}\x{2028}\x{2029}]"),
                '|' | '^' | '$' => self.out.push(c),
                c => literal(&mut self.out, c),
            }
        }
        match self.depth {
            0 => Ok(self.out),
            _ => Err("a group is not closed".into()),
        }
    }
}

/// The same set of texts in Rust's syntax, or why there is none.
pub fn translate(pattern: &str) -> Result<String, String> {
    let input = pattern.chars().peekable();
    let out = Translator { input, out: String::new(), depth: 0 }.run()?;
    // What is left to find: a repetition of nothing, a range that runs backwards, and the like.
    let read = RegexBuilder::new().mk(&RegexAst::SearchRegex(out.clone()));
    read.map_err(|error| last_line(&error))?;
    Ok(out)
}

/// Of an error that shows the pattern first.
fn last_line(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    line.trim_start_matches("error: ").chars().take(200).collect()
}

/// A text as itself.
pub fn escape(text: &str) -> String {
    let mut out = String::new();
    text.chars().for_each(|c| literal(&mut out, c));
    out
}

#[cfg(test)]
mod tests {
    use super::translate;

    fn matches(pattern: &str, text: &str) -> bool {
        let rust = translate(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
        regex::Regex::new(&rust).unwrap_or_else(|why| panic!("{rust}: {why}")).is_match(text)
    }

    #[test]
    fn means_the_same_in_both() {
        for (pattern, text, wanted) in [
            ("^a*$", "aaa", true),
            (r"^\d{3}-\d+$", "123-4", true),
            (r"^\d$", "\u{0967}", false), // Devanagari 1: \d is ASCII
            (r"^\w$", "é", false),
            (r"^\s$", "\u{feff}", true),
            (r"^\S$", "\u{feff}", false),
            ("^.$", "\r", false),
            (r"^[\w.-]+$", "a-b.c", true),
            (r"^[\d-]+$", "1-2", true),
            ("^[a&&b]$", "&", true),
            ("^[[a]$", "[", true),
            (r"^\u00e9\x41\cA$", "éA\u{1}", true),
            (r"^\ud83d\ude00$", "😀", true),
            (r"^(?<year>\d+)(?:x|y)??$", "1x", true),
            (r"^\/\-\.$", "/-.", true),
            (r"^\p{Letter}+$", "éa", true),
            ("^[^a-c]$", "b", false),
            ("^[-a]$", "-", true),
            ("^[a-]$", "-", true),
            ("~#", "x~#y", true),
        ] {
            assert_eq!(matches(pattern, text), wanted, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn refuses_what_is_not_regular_or_not_the_same() {
        for pattern in [
            r"\bword", "(?=a)", "(?!a)", "(?<=a)b", r"(a)\1", "[]a]", "a{", r"\y", "(a", "a)",
            r"\", r"\ud83d", "(?i)a", r"\k<x>", "a{3,2}", "a{70000}", r"\pL", "a**", "*a", "(|+)",
            "^*", "[b-a]",
        ] {
            assert!(translate(pattern).is_err(), "{pattern}");
        }
    }
}
