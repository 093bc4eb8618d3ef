//! EBNF as llama.cpp writes it (GBNF) as a tree: name ::= alternatives, "texts", [classes], groups,
//! * + ? {m,n}, and # comments. A rule ends where the next begins. Read next: ebnf.rs.

use std::collections::HashMap;

use crate::abi::Failure;

const RULES_MAX: usize = 2_000;
const DEPTH_MAX: usize = 32;
const REPEAT_MAX: u32 = 10_000;
const REPEATS_MAX: usize = 8; // of one part, one after the other

#[derive(Clone, Debug)]
pub enum Expr {
    /// A regular expression (of Rust) for one character.
    Class(String),
    Text(String),
    Rule(usize),
    Sequence(Vec<Expr>),
    Choice(Vec<Expr>),
    Repeat(Box<Expr>, u32, Option<u32>),
}

pub struct Rules {
    pub bodies: Vec<Expr>,
    pub root: usize, // an index of bodies
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    names: Vec<String>,
    index: HashMap<String, usize>,
    bodies: Vec<Option<Expr>>,
}

type Parsed<T> = Result<T, Failure>;

impl Parser<'_> {
    fn fail<T>(&self, what: &str) -> Parsed<T> {
        let line =
            self.text[..self.at.min(self.text.len())].iter().filter(|b| **b == b'\n').count();
        Err(Failure::Invalid(format!("line {} of the grammar: {what}", line + 1)))
    }

    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn skip(&mut self) {
        loop {
            match self.peek() {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'#' => {
                    while self.at < self.text.len() && self.peek() != b'\n' {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn word(&mut self) -> &str {
        let begin = self.at;
        while self.peek().is_ascii_alphanumeric() || matches!(self.peek(), b'-' | b'_') {
            self.at += 1;
        }
        std::str::from_utf8(&self.text[begin..self.at]).expect("ASCII is UTF-8")
    }

    fn rule_index(&mut self, name: String) -> Parsed<usize> {
        if let Some(index) = self.index.get(&name) {
            return Ok(*index);
        }
        if self.names.len() >= RULES_MAX {
            return Err(Failure::Limit(format!("the grammar has more than {RULES_MAX} rules")));
        }
        self.index.insert(name.clone(), self.names.len());
        self.names.push(name);
        self.bodies.push(None);
        Ok(self.names.len() - 1)
    }

    // Whether "name ::=" stands here.
    fn at_rule(&mut self) -> bool {
        let begin = self.at;
        let named = !self.word().is_empty();
        self.skip();
        let found = named && self.text[self.at..].starts_with(b"::=");
        self.at = begin;
        found
    }

    fn grammar(&mut self) -> Parsed<()> {
        self.skip();
        while self.at < self.text.len() {
            if !self.at_rule() {
                return self.fail("a rule (name ::= ...) is wanted here");
            }
            let name = self.word().to_string();
            let index = self.rule_index(name)?;
            self.skip();
            self.at += 3;
            let body = self.choice(0)?;
            if self.bodies[index].replace(body).is_some() {
                return self.fail(&format!("the rule {} stands twice", self.names[index]));
            }
        }
        Ok(())
    }

    fn choice(&mut self, depth: usize) -> Parsed<Expr> {
        if depth > DEPTH_MAX {
            return self.fail(&format!("groups are nested deeper than {DEPTH_MAX}"));
        }
        let mut options = vec![self.sequence(depth)?];
        while self.peek() == b'|' {
            self.at += 1;
            options.push(self.sequence(depth)?);
        }
        Ok(if options.len() == 1 { options.remove(0) } else { Expr::Choice(options) })
    }

    fn sequence(&mut self, depth: usize) -> Parsed<Expr> {
        let mut parts = Vec::new();
        loop {
            self.skip();
            let part = match self.peek() {
                b'"' => Expr::Text(self.text_literal()?),
                b'[' => Expr::Class(self.class()?),
                b'.' => {
                    self.at += 1;
                    Expr::Class(r"[\x{0}-\x{10FFFF}]".into())
                }
                b'(' => {
                    self.at += 1;
                    let inner = self.choice(depth + 1)?;
                    if self.peek() != b')' {
                        return self.fail("a group is not closed");
                    }
                    self.at += 1;
                    inner
                }
                c if c.is_ascii_alphanumeric() || c == b'_' => {
                    if self.at_rule() {
                        break;
                    }
                    let name = self.word().to_string();
                    Expr::Rule(self.rule_index(name)?)
                }
                _ => break,
            };
            parts.push(self.repeated(part)?);
        }
        let ends =
            self.at == self.text.len() || matches!(self.peek(), b'|' | b')') || self.at_rule();
        if !ends {
            return self.fail("this is not understood");
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::Sequence(parts) })
    }

    fn repeated(&mut self, part: Expr) -> Parsed<Expr> {
        let mut part = part;
        for _ in 0..REPEATS_MAX {
            let (least, most) = match self.peek() {
                b'*' => (0, None),
                b'+' => (1, None),
                b'?' => (0, Some(1)),
                b'{' => {
                    let bounds = self.bounds()?;
                    part = Expr::Repeat(Box::new(part), bounds.0, bounds.1);
                    continue;
                }
                _ => return Ok(part),
            };
            self.at += 1;
            part = Expr::Repeat(Box::new(part), least, most);
        }
        self.fail("too many repetitions of one part")
    }

    fn bounds(&mut self) -> Parsed<(u32, Option<u32>)> {
        self.at += 1;
        let least = self.number()?;
        let mut most = Some(least);
        if self.peek() == b',' {
            self.at += 1;
            most = if self.peek() == b'}' { None } else { Some(self.number()?) };
        }
        if self.peek() != b'}' || most.is_some_and(|most| most < least) {
            return self.fail("a repetition is {m}, {m,} or {m,n}");
        }
        self.at += 1;
        Ok((least, most))
    }

    fn number(&mut self) -> Parsed<u32> {
        let begin = self.at;
        let mut value = 0u32;
        while self.peek().is_ascii_digit() {
            value = value.saturating_mul(10).saturating_add(u32::from(self.peek() - b'0'));
            self.at += 1;
        }
        if begin == self.at || value > REPEAT_MAX {
            return self.fail(&format!("a repetition is a number up to {REPEAT_MAX}"));
        }
        Ok(value)
    }

    // One character of a literal or class; the source is UTF-8.
    fn character(&mut self) -> Parsed<char> {
        if self.peek() != b'\\' {
            let rest = std::str::from_utf8(&self.text[self.at..]).expect("on a boundary");
            let Some(c) = rest.chars().next().filter(|c| *c != '\n') else {
                return self.fail("a text or class is not closed");
            };
            self.at += c.len_utf8();
            return Ok(c);
        }
        let escape = self.text.get(self.at + 1).copied().unwrap_or(0);
        self.at += 2;
        let digits = match escape {
            b'n' => return Ok('\n'),
            b'r' => return Ok('\r'),
            b't' => return Ok('\t'),
            b'"' | b'\\' | b'[' | b']' | b'-' | b'^' => return Ok(char::from(escape)),
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            _ => return self.fail("an escape is one of n r t \" \\ [ ] - ^ x u U"),
        };
        let hex =
            self.text.get(self.at..self.at + digits).and_then(|h| std::str::from_utf8(h).ok());
        let code = hex
            .filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        self.at += digits;
        match code.and_then(char::from_u32) {
            Some(c) => Ok(c),
            None => self.fail("an escape names no character"),
        }
    }

    fn text_literal(&mut self) -> Parsed<String> {
        self.at += 1;
        let mut text = String::new();
        while self.peek() != b'"' {
            text.push(self.character()?);
        }
        self.at += 1;
        Ok(text)
    }

    fn class(&mut self) -> Parsed<String> {
        self.at += 1;
        let mut out = String::from("[");
        if self.peek() == b'^' {
            self.at += 1;
            out.push('^');
        }
        let mut empty = true;
        while self.peek() != b']' {
            let first = self.character()?;
            let mut last = first;
            if self.peek() == b'-' && self.text.get(self.at + 1) != Some(&b']') {
                self.at += 1;
                last = self.character()?;
            }
            if last < first {
                return self.fail("a range in a class runs backwards");
            }
            out.push_str(&format!("\\x{{{:X}}}-\\x{{{:X}}}", first as u32, last as u32));
            empty = false;
        }
        self.at += 1;
        if empty {
            return self.fail("a class is empty");
        }
        out.push(']');
        Ok(out)
    }
}

pub fn parse(source: &str) -> Result<Rules, Failure> {
    let mut parser = Parser {
        text: source.as_bytes(),
        at: 0,
        names: Vec::new(),
        index: HashMap::new(),
        bodies: Vec::new(),
    };
    parser.grammar()?;
    let Some(root) = parser.index.get("root").copied() else {
        return Err(Failure::Invalid("the grammar has no rule root".into()));
    };
    let mut bodies = Vec::new();
    for (name, body) in parser.names.iter().zip(parser.bodies) {
        bodies
            .push(body.ok_or_else(|| Failure::Invalid(format!("the grammar has no rule {name}")))?);
    }
    Ok(Rules { bodies, root })
}
