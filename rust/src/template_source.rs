//! What is done to a template's source, by minijinja's own lexer, before it is compiled. Hugging
//! Face's generation tag becomes `{% if true %}`. Tags so long that compiling them recurses too
//! deeply, and recursive loops, are refused. `A * B` becomes `A|__factor * B|__factor`. Every value
//! that gets a name passes a filter of template_keep: `{% set x = E %}` becomes
//! `{% set x = (E)|__keep %}`; behind for, macro, call and with stands `{% set x = x|__keep %}`.

use minijinja::machinery::{tokenize, Span, Token};
use minijinja::syntax::SyntaxConfig;

use crate::abi::Failure;

/// Tokens of one tag; the templates at hand have at most 56.
const TAG_TOKENS_MAX: usize = 512;
/// `elif`s of a template nest inside the compiler; at hand at most 20.
const ELIFS_MAX: usize = 256;
type Lexed<'a> = (Token<'a>, Span);

pub fn prepare(source: &str, syntax: SyntaxConfig) -> Result<String, Failure> {
    let mut edits = Edits::default();
    let mut tag: Vec<Lexed> = Vec::new();
    let mut elifs = 0;
    for lexed in tokenize(source, false, syntax) {
        // The compiler will say it better.
        let Ok((token, span)) = lexed else { return Ok(source.to_string()) };
        match token {
            Token::TemplateData(_) => {}
            Token::VariableStart | Token::BlockStart => tag.clear(),
            Token::VariableEnd => guard_products(&tag, &mut edits),
            Token::BlockEnd => {
                elifs += usize::from(is_name(tag.first(), "elif"));
                if elifs > ELIFS_MAX {
                    return Err(refusal(span, format!("more than {ELIFS_MAX} elif tags")));
                }
                rewrite(source, &tag, span, &mut edits)?;
            }
            _ if tag.len() == TAG_TOKENS_MAX => {
                return Err(refusal(span, format!("a tag of more than {TAG_TOKENS_MAX} tokens")));
            }
            token => tag.push((token, span)),
        }
    }
    Ok(edits.apply(source))
}

fn refusal(span: Span, what: String) -> Failure {
    Failure::Invalid(format!("the chat template has {what} (line {})", span.start_line))
}

fn name<'a>(lexed: Option<&Lexed<'a>>) -> Option<&'a str> {
    match lexed {
        Some((Token::Ident(name), _)) => Some(name),
        _ => None,
    }
}

fn is_name(lexed: Option<&Lexed>, wanted: &str) -> bool {
    name(lexed) == Some(wanted)
}

/// Puts `|__factor` behind both sides of each product. A filter binds tighter than `*`, so that on
/// the left it takes the nearest operand; on the right the operand's end is looked for.
fn guard_products(tag: &[Lexed], edits: &mut Edits) {
    let mut places = Vec::new();
    for (index, (token, _)) in tag.iter().enumerate() {
        if matches!(token, Token::Mul) && index > 0 && index + 1 < tag.len() {
            places.push(tag[index - 1].1.end_offset);
            places.push(tag[operand_end(tag, index + 1)].1.end_offset);
        }
    }
    places.sort_unstable();
    places.dedup();
    for place in places {
        edits.insert(place, "|__factor".into());
    }
}

/// The last token of the operand that begins at `start`: signs, one thing, then `.x`, `[x]` and
/// `(x)`.
fn operand_end(tag: &[Lexed], start: usize) -> usize {
    let mut at = start;
    while matches!(tag[at].0, Token::Minus | Token::Plus) && at + 1 < tag.len() {
        at += 1;
    }
    at = group_end(tag, at);
    loop {
        match tag.get(at + 1).map(|(token, _)| token) {
            Some(Token::Dot) if at + 2 < tag.len() => at += 2,
            Some(Token::BracketOpen | Token::ParenOpen) => at = group_end(tag, at + 1),
            _ => return at,
        }
    }
}

/// The token that closes the bracket at `start`; `start` itself where there is none.
fn group_end(tag: &[Lexed], start: usize) -> usize {
    if !matches!(tag[start].0, Token::ParenOpen | Token::BracketOpen | Token::BraceOpen) {
        return start;
    }
    let closed = depths(&tag[start..]).position(|depth| depth == 0);
    closed.map_or(tag.len() - 1, |offset| start + offset)
}

fn rewrite(source: &str, tag: &[Lexed], end: Span, edits: &mut Edits) -> Result<(), Failure> {
    guard_products(tag, edits);
    match name(tag.first()) {
        Some("generation") => edits.replace(tag[0].1, "if true"),
        Some("endgeneration") => edits.replace(tag[0].1, "endif"),
        Some("set") => keep_assigned(tag, end, edits),
        Some("for") => {
            if is_name(tag.last(), "recursive") {
                return Err(refusal(end, "a recursive loop, which is not supported".into()));
            }
            let targets = tag[1..].iter().take_while(|lexed| !is_name(Some(lexed), "in"));
            keep_named(source, targets.filter_map(|lexed| name(Some(lexed))), end, edits);
        }
        Some("macro" | "call") => keep_named(source, parameters(tag), end, edits),
        Some("with") => keep_named(source, assigned(tag), end, edits),
        _ => {}
    }
    Ok(())
}

/// The depth of brackets after each token.
fn depths<'a>(tag: &'a [Lexed]) -> impl Iterator<Item = i32> + 'a {
    tag.iter().scan(0, |depth, (token, _)| {
        *depth += match token {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => -1,
            _ => 0,
        };
        Some(*depth)
    })
}

fn keep_assigned(tag: &[Lexed], end: Span, edits: &mut Edits) {
    let found = tag
        .iter()
        .zip(depths(tag))
        .position(|((token, _), depth)| depth == 0 && matches!(token, Token::Assign));
    let Some(at) = found else {
        return; // {% set x %}...{% endset %} is text
    };
    let into_namespace = tag[..at].iter().any(|(token, _)| matches!(token, Token::Dot));
    edits.insert(tag[at].1.end_offset, "(".into());
    let filter = if into_namespace { "__keep_in" } else { "__keep" };
    edits.insert(end.start_offset, format!(")|{filter}"));
}

/// The parameters of `macro name(a, b=1)` or `call(a) f()`.
fn parameters<'a, 's>(tag: &'a [Lexed<'s>]) -> impl Iterator<Item = &'s str> + 'a {
    let closed = tag
        .iter()
        .zip(depths(tag))
        .skip(1)
        .position(|((token, _), depth)| depth == 0 && matches!(token, Token::ParenClose));
    let list = &tag[..closed.map_or(0, |position| position + 1)];
    list.iter().zip(depths(list)).enumerate().filter_map(|(index, (lexed, depth))| {
        let opens = index > 0 && matches!(list[index - 1].0, Token::ParenOpen | Token::Comma);
        name(Some(lexed)).filter(|_| depth == 1 && opens)
    })
}

/// The names of `with a = 1, b = 2`.
fn assigned<'a, 's>(tag: &'a [Lexed<'s>]) -> impl Iterator<Item = &'s str> + 'a {
    tag.iter().zip(depths(tag)).enumerate().filter_map(|(index, (lexed, depth))| {
        let assigned = matches!(tag.get(index + 1), Some((Token::Assign, _)));
        name(Some(lexed)).filter(|_| depth == 0 && assigned)
    })
}

fn keep_named<'s>(
    source: &str,
    names: impl Iterator<Item = &'s str>,
    end: Span,
    edits: &mut Edits,
) {
    // The tag's own end, so that the same white space is trimmed after it.
    let close = &source[end.start_offset as usize..end.end_offset as usize];
    let text: String =
        names.map(|name| format!("{{% set {name} = {name}|__keep {close}")).collect();
    edits.insert(end.end_offset, text);
}

/// Changes to a text; at one place, in the order in which they were made.
#[derive(Default)]
struct Edits(Vec<(usize, usize, String)>);

impl Edits {
    fn insert(&mut self, offset: u32, text: String) {
        self.0.push((offset as usize, offset as usize, text));
    }

    fn replace(&mut self, span: Span, text: &str) {
        self.0.push((span.start_offset as usize, span.end_offset as usize, text.into()));
    }

    fn apply(mut self, source: &str) -> String {
        self.0.sort_by_key(|(start, _, _)| *start);
        let mut result = String::with_capacity(source.len() * 2);
        let mut done = 0;
        for (start, end, text) in &self.0 {
            result.push_str(&source[done..*start]);
            result.push_str(text);
            done = *end;
        }
        result.push_str(&source[done..]);
        result
    }
}
