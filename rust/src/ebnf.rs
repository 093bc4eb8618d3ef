//! EBNF in Lark. EBNF speaks of characters, llguidance's lexer of terminals, each of which it takes
//! as long as it can. The two agree where the next character always tells whether a terminal goes
//! on: everything in a grammar that is not recursive becomes part of a terminal, and where two
//! terminals could not be told apart so, the grammar is refused. A grammar without recursion is one
//! terminal, and always agrees. Read next: ebnf_parse.rs.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use llguidance::derivre::{Regex, RegexAst, RegexBuilder};

use crate::abi::Failure;
use crate::ebnf_parse::{parse, Expr, Rules};
use crate::grammar_source::lark_string;

const TERMINALS_MAX: usize = 200;
const NODES_MAX: usize = 20_000; // of terminals, references written out
const COPIES_MAX: u64 = 100_000; // of their nodes, repetitions written out
const STATES_MAX: usize = 2_000; // of two terminals read side by side
const FUEL: u64 = 200_000;

type Bytes = [bool; 256];

/// The grammar over terminals.
enum Part {
    Terminal(usize),
    Rule(usize),
    Sequence(Vec<Part>),
    Choice(Vec<Part>),
    Repeat(Box<Part>, u32, Option<u32>),
}

struct Terminal {
    lark: String,
    first: Bytes,
    follow: Bytes,
    regex: Regex,
}

struct Converter<'a> {
    rules: &'a Rules,
    regular: Vec<bool>,
    long: bool, // neighbours in a sequence are one terminal

    terminals: Vec<Terminal>,
    known: BTreeMap<String, usize>,
}

/// Rules from which no rule that contains itself is reached.
fn regular_rules(rules: &Rules) -> Vec<bool> {
    fn uses(expr: &Expr, out: &mut Vec<usize>) {
        match expr {
            Expr::Rule(index) => out.push(*index),
            Expr::Sequence(parts) | Expr::Choice(parts) => parts.iter().for_each(|p| uses(p, out)),
            Expr::Repeat(inner, _, _) => uses(inner, out),
            Expr::Class(_) | Expr::Text(_) => {}
        }
    }
    let mut used = vec![Vec::new(); rules.bodies.len()];
    rules.bodies.iter().zip(&mut used).for_each(|(body, out)| uses(body, out));
    // A rule is regular once all that it uses are; what never becomes so is recursive.
    let mut regular = vec![false; used.len()];
    loop {
        let ready = |index: usize| !regular[index] && used[index].iter().all(|rule| regular[*rule]);
        let found: Vec<usize> = (0..used.len()).filter(|index| ready(*index)).collect();
        if found.is_empty() {
            return regular;
        }
        found.into_iter().for_each(|index| regular[index] = true);
    }
}

/// Of a terminal, so far.
struct Size {
    nodes: usize,
    copies: u64,
    times: u64, // that the node at hand is repeated
}

impl Default for Size {
    fn default() -> Size {
        Size { nodes: 0, copies: 0, times: 1 }
    }
}

impl Converter<'_> {
    fn is_regular(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Class(_) | Expr::Text(_) => true,
            Expr::Rule(index) => self.regular[*index],
            Expr::Sequence(parts) | Expr::Choice(parts) => parts.iter().all(|p| self.is_regular(p)),
            Expr::Repeat(inner, _, _) => self.is_regular(inner),
        }
    }

    /// A regular part as Lark's terminals have it and as derivre does.
    fn write(&self, expr: &Expr, lark: &mut String, size: &mut Size) -> Result<RegexAst, Failure> {
        size.nodes += 1;
        size.copies = size.copies.saturating_add(size.times);
        if size.nodes > NODES_MAX || size.copies > COPIES_MAX {
            return Err(Failure::Limit("a terminal of the grammar is too large".into()));
        }
        Ok(match expr {
            Expr::Class(class) => {
                lark.push_str(&format!("/{}/", llguidance::regex_to_lark(class, "")));
                RegexAst::Regex(class.clone())
            }
            Expr::Text(text) => {
                lark.push_str(&lark_string(text));
                RegexAst::Literal(text.clone())
            }
            Expr::Rule(index) => self.write(&self.rules.bodies[*index], lark, size)?,
            Expr::Sequence(parts) => {
                lark.push('(');
                let mut all = Vec::new();
                for part in parts {
                    all.push(self.write(part, lark, size)?);
                    lark.push(' ');
                }
                lark.push_str(if parts.is_empty() { "\"\")" } else { ")" });
                RegexAst::Concat(all)
            }
            Expr::Choice(options) => {
                lark.push('(');
                let mut all = Vec::new();
                for (index, option) in options.iter().enumerate() {
                    lark.push_str(if index > 0 { "| " } else { "" });
                    all.push(self.write(option, lark, size)?);
                }
                lark.push(')');
                RegexAst::Or(all)
            }
            Expr::Repeat(inner, least, most) => {
                lark.push('(');
                let times = size.times;
                size.times = times.saturating_mul(most.unwrap_or(*least).max(1).into());
                let inner = self.write(inner, lark, size)?;
                size.times = times;
                write_bounds(lark, *least, *most);
                RegexAst::Repeat(Box::new(inner), *least, most.unwrap_or(u32::MAX))
            }
        })
    }

    /// A part that may be empty is an optional terminal that is not.
    fn terminal(&mut self, expr: &Expr) -> Result<Part, Failure> {
        let mut lark = String::new();
        let ast = self.write(expr, &mut lark, &mut Size::default())?;
        let mut builder = RegexBuilder::new();
        let wrong = |error| Failure::Limit(format!("a terminal of the grammar: {error}"));
        let whole = builder.mk(&ast).map_err(wrong)?;
        let optional = builder.is_nullable(whole);
        let written =
            RegexAst::And(vec![RegexAst::ExprRef(whole), RegexAst::Regex("(?s:.+)".into())]);
        let written = builder.mk(&written).map_err(wrong)?;
        let mut regex = builder.into_regex_limited(written, FUEL).map_err(wrong)?;
        if regex.always_empty() {
            return Ok(Part::Sequence(Vec::new()));
        }
        if optional {
            lark = format!("{lark} & /(?s:.+)/");
        }
        let index = match self.known.get(&lark) {
            Some(index) => *index,
            None => {
                let start = regex.initial_state();
                let mut first = [false; 256];
                for byte in 0..=255u8 {
                    first[byte as usize] = !regex.transition(start, byte).is_dead();
                }
                self.known.insert(lark.clone(), self.terminals.len());
                self.terminals.push(Terminal { lark, first, follow: [false; 256], regex });
                self.terminals.len() - 1
            }
        };
        if self.terminals.len() > TERMINALS_MAX {
            return Err(Failure::Limit(format!(
                "the grammar has more than {TERMINALS_MAX} terminals"
            )));
        }
        let part = Part::Terminal(index);
        Ok(if optional { Part::Repeat(Box::new(part), 0, Some(1)) } else { part })
    }

    /// Neighbours that are regular become one terminal: always where there is a choice of them.
    fn merge(
        &mut self,
        parts: &[Expr],
        join: fn(Vec<Expr>) -> Expr,
        long: bool,
    ) -> Result<Vec<Part>, Failure> {
        let mut out = Vec::new();
        let mut run: Vec<Expr> = Vec::new();
        for part in parts {
            let regular = self.is_regular(part);
            if !run.is_empty() && !(regular && long) {
                out.push(self.terminal(&join(std::mem::take(&mut run)))?);
            }
            if regular {
                run.push(part.clone());
            } else {
                out.push(self.part(part)?);
            }
        }
        if !run.is_empty() {
            out.push(self.terminal(&join(run))?);
        }
        Ok(out)
    }

    fn part(&mut self, expr: &Expr) -> Result<Part, Failure> {
        if self.is_regular(expr) {
            return self.terminal(expr);
        }
        Ok(match expr {
            Expr::Rule(index) => Part::Rule(*index),
            Expr::Sequence(parts) => {
                Part::Sequence(self.merge(parts, Expr::Sequence, self.long)?)
            }
            Expr::Choice(options) => Part::Choice(self.merge(options, Expr::Choice, true)?),
            Expr::Repeat(inner, least, most) => {
                Part::Repeat(Box::new(self.part(inner)?), *least, *most)
            }
            Expr::Class(_) | Expr::Text(_) => unreachable!("these are regular"),
        })
    }

    /// What `part` may begin with, and whether it may be empty.
    fn first(&self, part: &Part, rules: &[(Bytes, bool)]) -> (Bytes, bool) {
        match part {
            Part::Terminal(index) => (self.terminals[*index].first, false),
            Part::Rule(index) => rules[*index],
            Part::Sequence(parts) => {
                let mut all = ([false; 256], true);
                for part in parts {
                    let (first, empty) = self.first(part, rules);
                    add(&mut all.0, &first);
                    if !empty {
                        return (all.0, false);
                    }
                }
                all
            }
            Part::Choice(options) => {
                let mut all = ([false; 256], false);
                for option in options {
                    let (first, empty) = self.first(option, rules);
                    add(&mut all.0, &first);
                    all.1 |= empty;
                }
                all
            }
            Part::Repeat(inner, least, _) => {
                let (first, empty) = self.first(inner, rules);
                (first, empty || *least == 0)
            }
        }
    }

    /// Tells the terminals and rules in `part` what may come after them; true when it was news.
    fn flow(
        &mut self,
        part: &Part,
        follow: Bytes,
        firsts: &[(Bytes, bool)],
        follows: &mut [Bytes],
    ) -> bool {
        match part {
            Part::Terminal(index) => add(&mut self.terminals[*index].follow, &follow),
            Part::Rule(index) => add(&mut follows[*index], &follow),
            Part::Sequence(parts) => {
                let (mut news, mut after) = (false, follow);
                for part in parts.iter().rev() {
                    news |= self.flow(part, after, firsts, follows);
                    let (first, empty) = self.first(part, firsts);
                    if !empty {
                        after = [false; 256];
                    }
                    add(&mut after, &first);
                }
                news
            }
            Part::Choice(options) => {
                options.iter().fold(false, |news, o| self.flow(o, follow, firsts, follows) | news)
            }
            Part::Repeat(inner, _, most) => {
                let mut after = follow;
                if *most != Some(1) {
                    add(&mut after, &self.first(inner, firsts).0);
                }
                self.flow(inner, after, firsts, follows)
            }
        }
    }

    /// What may follow each terminal.
    fn follow(&mut self, parts: &[(usize, Part)]) {
        let count = self.rules.bodies.len();
        let mut firsts = vec![([false; 256], false); count];
        let mut news = true;
        while std::mem::take(&mut news) {
            for (rule, part) in parts {
                let (first, empty) = self.first(part, &firsts);
                news |= add(&mut firsts[*rule].0, &first) | (empty && !firsts[*rule].1);
                firsts[*rule].1 |= empty;
            }
        }
        let mut follows = vec![[false; 256]; count];
        let mut news = true;
        while std::mem::take(&mut news) {
            for (rule, part) in parts {
                let follow = follows[*rule];
                news |= self.flow(part, follow, &firsts, &mut follows);
            }
        }
    }

    /// Whether, at the end of `a`, a character that may follow could also go on in `b`, which may
    /// begin where `a` does.
    fn ambiguous(&mut self, a: usize, b: usize) -> Result<bool, Failure> {
        let follow = self.terminals[a].follow;
        let (mut left, mut right) =
            (self.terminals[a].regex.clone(), self.terminals[b].regex.clone());
        let start = (left.initial_state(), right.initial_state());
        let (mut seen, mut todo) = (HashSet::from([start]), vec![start]);
        while let Some((x, y)) = todo.pop() {
            let ends = left.is_accepting(x);
            for byte in 0..=255u8 {
                let next = right.transition(y, byte);
                if next.is_dead() {
                    continue;
                }
                if ends && follow[byte as usize] {
                    return Ok(true);
                }
                let state = (left.transition(x, byte), next);
                if !state.0.is_dead() && seen.insert(state) {
                    todo.push(state);
                }
            }
            if seen.len() > STATES_MAX {
                return Err(Failure::Limit("the terminals of the grammar are too complex".into()));
            }
        }
        Ok(false)
    }
}

fn add(to: &mut Bytes, from: &Bytes) -> bool {
    let mut news = false;
    for (to, from) in to.iter_mut().zip(from) {
        news |= *from && !*to;
        *to |= *from;
    }
    news
}

fn write_bounds(lark: &mut String, least: u32, most: Option<u32>) {
    let written = match (least, most) {
        (0, None) => write!(lark, ")*"),
        (1, None) => write!(lark, ")+"),
        (0, Some(1)) => write!(lark, ")?"),
        (least, Some(most)) => write!(lark, "){{{least},{most}}}"),
        (least, None) => write!(lark, "){{{least},}}"),
    };
    written.expect("a String takes all");
}

fn write_part(part: &Part, lark: &mut String) {
    match part {
        Part::Terminal(index) => write!(lark, "T{index}").expect("a String takes all"),
        Part::Rule(index) => write!(lark, "r{index}").expect("a String takes all"),
        Part::Sequence(parts) | Part::Choice(parts) => {
            let choice = matches!(part, Part::Choice(_));
            lark.push('(');
            for (index, part) in parts.iter().enumerate() {
                lark.push_str(if choice && index > 0 { " | " } else { " " });
                write_part(part, lark);
            }
            lark.push_str(if parts.is_empty() { "\"\")" } else { ")" });
        }
        Part::Repeat(inner, least, most) => {
            lark.push('(');
            write_part(inner, lark);
            write_bounds(lark, *least, *most);
        }
    }
}

/// The same language in Lark, or why it cannot be had. Long terminals decide more by themselves,
/// short ones are more often the same; either may be the way that works.
pub fn to_lark(source: &str) -> Result<String, Failure> {
    let rules = parse(source)?;
    match convert(&rules, true) {
        Err(Failure::Unsupported(_)) => convert(&rules, false),
        decided => decided,
    }
}

fn convert(rules: &Rules, long: bool) -> Result<String, Failure> {
    let regular = regular_rules(rules);
    let mut converter =
        Converter { rules, regular, long, terminals: Vec::new(), known: BTreeMap::new() };
    let mut parts = Vec::new();
    if converter.regular[rules.root] {
        parts.push((rules.root, converter.terminal(&rules.bodies[rules.root])?));
    } else {
        for index in
            (0..rules.bodies.len()).filter(|index| !converter.regular[*index]).collect::<Vec<_>>()
        {
            parts.push((index, converter.part(&rules.bodies[index])?));
        }
    }
    converter.follow(&parts);
    for a in 0..converter.terminals.len() {
        for b in 0..converter.terminals.len() {
            if converter.ambiguous(a, b)? {
                return Err(Failure::Unsupported(format!(
                    "the grammar cannot be enforced: where {} ends, the next character does not \
                     tell it from {}",
                    shown(&converter.terminals[a].lark),
                    shown(&converter.terminals[b].lark),
                )));
            }
        }
    }
    let mut lark = format!("start: r{}\n", rules.root);
    for (rule, part) in &parts {
        write!(lark, "r{rule}: ").expect("a String takes all");
        write_part(part, &mut lark);
        lark.push('\n');
    }
    for (index, terminal) in converter.terminals.iter().enumerate() {
        writeln!(lark, "T{index}: {}", terminal.lark).expect("a String takes all");
    }
    Ok(lark)
}

fn shown(lark: &str) -> String {
    lark.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::to_lark;

    #[test]
    fn converts_recursion_where_characters_decide() {
        let json = r##"
            root   ::= object
            value  ::= object | array | string | number | ("true" | "false" | "null") ws
            object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
            array  ::= "[" ws ( value ("," ws value)* )? "]" ws
            string ::= "\"" ( [^"\\\x7F\x00-\x1F] | escape )* "\"" ws
            escape ::= "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4})
            number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
            ws ::= [ \t\n]{0,20}   # bounded
        "##;
        to_lark(json).unwrap();
        to_lark("root ::= \"ab\" | \"abc\" [0-9]*").unwrap();
        to_lark("root ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" root \")\"").unwrap();
    }

    #[test]
    fn refuses_what_the_next_character_does_not_decide() {
        for source in [
            "root ::= [a-z]+ tail\ntail ::= \"a\" tail | \"!\"", // [a-z]+ would eat the tail
            "root ::= (\"a\" | \"ab\" root) \"b\"",
        ] {
            assert!(to_lark(source).is_err(), "{source}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for source in [
            "",
            "start ::= \"a\"",
            "root ::= other",
            "root ::= \"a",
            "root ::= (\"a\"",
            "root ::= [",
            "root ::= \"a\"{3,2}",
            "root ::= []",
            "root ::= \"\\q\"",
            "root ::= ) \"a\"",
            "root ::= \"a\"\nroot ::= \"b\"",
            "root = \"a\"",
        ] {
            assert!(to_lark(source).is_err(), "{source}");
        }
    }
}
