//! How a text is cut before byte-level BPE, by the name in tokenizer.ggml.pre. The patterns are
//! those of the models' own tokenizer.json; names and groups as in llama.cpp's converter. All run
//! on crate regex (its engine, regex-automata), whose time is linear in the text whatever the text
//! is, unlike a backtracking engine. That crate has no look-ahead; the only one needed,
//! `\s+(?!\S)`, is done by hand (`Spaces`).

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input, Match};

use crate::abi::Failure;

/// What to do with a match that ends in white space and is followed by something else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spaces {
    /// The pattern has no `\s+(?!\S)`.
    AsMatched,
    /// `\s+(?!\S)|\s+`, written as `\s+`: the run's last character goes with what follows it.
    LeaveLast,
    /// The same, in patterns where a run that holds a newline is taken by an earlier branch.
    LeaveLastButNewline,
}

/// One cut: matches and the gaps between them become pieces, each of which the next step cuts
/// again.
struct Step {
    regex: Regex,
    spaces: Spaces,
}

pub struct PreTokenizer {
    steps: Vec<Step>,
    /// A whole piece that is an entry is taken as it is, whatever the merges say.
    pub ignore_merges: bool,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";
const LLAMA3: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const QWEN35: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|",
    r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const UFAKZEKA: &str = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+";
const SEED_CODER: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
    r" ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+"
);
const MINICPM5: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const TEKKEN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|",
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+"
);
const GPT4O: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+"
);
const DEEPSEEK3: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"##,
    r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const DEEPSEEK_CJK: &str = r"[一-龥\u{800}-一가-\u{d7ff}]+";
/// Cased letters, as the model's file lists them.
const DEEPSEEK_LETTERS: &str = concat!(
    r"\s?[",
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ",
    "-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK",
    "-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-",
    "𐳲𑢠-𑣟𞤀-𞥃",
    "]+"
);
const BLOOM: &str = r" ?[^(\s|.,!?…。，、।۔،)]+";
const LINES: &str = r"[^\n]+|[\n]+";

type StepText = (&'static str, Spaces);

/// The steps of a name, and whether merges are ignored for whole entries.
fn table(name: &str) -> Option<(Vec<StepText>, bool)> {
    use Spaces::{AsMatched, LeaveLast, LeaveLastButNewline};
    let one = |text| vec![(text, LeaveLastButNewline)];
    let steps = match name {
        "" | "default" => vec![
            (r"[\p{P}\$\+<=>\^~\|]+", AsMatched),
            (GPT2, LeaveLast),
            (r"\p{N}+", AsMatched),
            (r"[0-9][0-9][0-9]", AsMatched),
        ],
        "gpt-2" | "phi-2" | "jina-es" | "jina-de" | "jina-v2-es" | "jina-v2-de" | "gigachat"
        | "a.x-4.0" | "mellum" | "modern-bert" | "mpt" | "olmo" | "jais" | "trillion"
        | "granite-docling" | "exaone4" => vec![(GPT2, LeaveLast)],
        "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" | "minerva-7b"
        | "mellum2" => vec![(r"\p{N}", AsMatched), (GPT2, LeaveLast)],
        "falcon" => vec![
            (r"[\p{P}\$\+<=>\^~\|`]+", AsMatched),
            (GPT2, LeaveLast),
            (r"[0-9][0-9][0-9]", AsMatched),
        ],
        "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "falcon-h1" | "pixtral" | "midm-2.0"
        | "lfm2" | "jina-v5-nano" | "glm4" | "glm5" => return Some((one(LLAMA3), true)),
        "dbrx" | "smaug-bpe" | "chatglm-bpe" => one(LLAMA3),
        "qwen2" | "deepseek-r1-qwen" | "kormo" | "f2llmv2" | "megrez" | "stablelm2" | "hunyuan"
        | "solar-open" | "grok-2" => one(QWEN2),
        "qwen35" => one(QWEN35),
        "ufakzeka" => one(UFAKZEKA),
        "seed-coder" => one(SEED_CODER),
        "minicpm5" => {
            let steps = vec![(r"\p{N}{1,3}", AsMatched), (MINICPM5, LeaveLastButNewline)];
            return Some((steps, true));
        }
        "tekken" => return Some((one(TEKKEN), true)),
        "gpt-4o" | "llama4" | "kanana2" | "minimax-m2" => one(GPT4O),
        "deepseek-llm" => vec![
            (r"[\r\n]", AsMatched),
            (DEEPSEEK_LETTERS, AsMatched),
            (r"\s?[!-/:-~！-／：-～‘-‟　-。]+", AsMatched),
            (r"\s+$", AsMatched),
            (DEEPSEEK_CJK, AsMatched),
            (r"\p{N}+", AsMatched),
        ],
        "deepseek-coder" => vec![
            (r"[\r\n]", AsMatched),
            (r"\s?\p{L}+", AsMatched),
            (r"\s?\p{P}+", AsMatched),
            (DEEPSEEK_CJK, AsMatched),
            (r"\p{N}", AsMatched),
        ],
        "deepseek-v3" | "hunyuan-dense" | "joyai-llm" | "hy_v4" => vec![
            (r"\p{N}{1,3}", AsMatched),
            (r"[一-龥\u{3040}-ゟ゠-ヿ]+", AsMatched),
            (DEEPSEEK3, LeaveLastButNewline),
        ],
        "poro-chat" | "bloom" | "gpt3-finnish" => vec![(BLOOM, AsMatched)],
        "viking" => vec![(BLOOM, AsMatched), (r"\p{N}", AsMatched)],
        "laguna" => vec![(LINES, AsMatched), (QWEN2, LeaveLastButNewline)],
        "gemma4" => vec![(LINES, AsMatched)],
        _ => return None,
    };
    Some((steps, false))
}

impl PreTokenizer {
    pub fn named(name: &str) -> Result<Self, Failure> {
        let Some((texts, ignore_merges)) = table(name) else {
            let name: String = name.chars().take(40).collect();
            return Err(Failure::Unsupported(format!("pre-tokenizer \"{name}\"")));
        };
        let steps = texts
            .into_iter()
            .map(|(text, spaces)| match Regex::new(text) {
                Ok(regex) => Ok(Step { regex, spaces }),
                Err(error) => Err(Failure::Internal(format!("pre-tokenizer {name}: {error}"))),
            })
            .collect::<Result<_, _>>()?;
        Ok(PreTokenizer { steps, ignore_merges })
    }

    /// Calls `each` with the pieces, in order; together they are the text.
    pub fn split(
        &self,
        text: &str,
        each: &mut dyn FnMut(&str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        split_from(&self.steps, text, each)
    }
}

fn split_from(
    steps: &[Step],
    text: &str,
    each: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some((step, rest)) = steps.split_first() else {
        return if text.is_empty() { Ok(()) } else { each(text) };
    };
    let mut done = 0;
    while done < text.len() {
        let Some(found) = step.find(text, done) else {
            break;
        };
        if found.start() > done {
            split_from(rest, &text[done..found.start()], each)?;
        }
        let end = step.end_of(text, found.start(), found.end());
        split_from(rest, &text[found.start()..end], each)?;
        done = end;
    }
    split_from(rest, &text[done..], each)
}

impl Step {
    /// The leftmost match from `start` on. Most patterns match everywhere, and a match that is to
    /// begin at `start` is found in one pass; others take a second one, backwards, for where they
    /// begin.
    fn find(&self, text: &str, start: usize) -> Option<Match> {
        let input = Input::new(text).range(start..);
        self.regex
            .search(&input.clone().anchored(Anchored::Yes))
            .or_else(|| self.regex.search(&input))
    }

    /// Where the match ends once the look-ahead is honoured.
    fn end_of(&self, text: &str, start: usize, end: usize) -> usize {
        if self.spaces == Spaces::AsMatched || end == text.len() {
            return end;
        }
        let Some(last) = text[start..end].chars().next_back() else {
            return end;
        };
        let newline = matches!(last, '\r' | '\n');
        let kept = newline && self.spaces == Spaces::LeaveLastButNewline;
        let shorter = end - last.len_utf8();
        if !last.is_whitespace() || kept || shorter == start {
            return end;
        }
        shorter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64, seeded: the test is the same everywhere.
    struct Random(u64);
    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) % bound
        }
    }

    fn pieces(pre: &PreTokenizer, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        pre.split(text, &mut |piece| {
            pieces.push(piece.to_string());
            Ok(())
        })
        .unwrap();
        pieces
    }

    /// A step for a backtracking engine, with the look-ahead as the models' files have it.
    fn original((pattern, spaces): &StepText) -> fancy_regex::Regex {
        let full = match spaces {
            Spaces::AsMatched => pattern.to_string(),
            _ => pattern.strip_suffix(r"|\s+").unwrap().to_string() + r"|\s+(?!\S)|\s+",
        };
        fancy_regex::Regex::new(&full).unwrap()
    }

    fn reference(steps: &[fancy_regex::Regex], text: &str) -> Vec<String> {
        let Some((step, rest)) = steps.split_first() else {
            return if text.is_empty() { vec![] } else { vec![text.to_string()] };
        };
        let mut result = Vec::new();
        let mut done = 0;
        for found in step.find_iter(text) {
            let found = found.unwrap();
            result.extend(reference(rest, &text[done..found.start()]));
            result.extend(reference(rest, found.as_str()));
            done = found.end();
        }
        result.extend(reference(rest, &text[done..]));
        result
    }

    #[test]
    fn looks_ahead_as_the_original_patterns_do() {
        let alphabet: Vec<char> =
            "aZé한中1٣½ \u{a0}\t\n\r'sſLL.!$_-/~`|\u{301}🦙ñÀ\u{3000}".chars().collect();
        let names = [
            "default",
            "gpt-2",
            "smollm",
            "falcon",
            "llama-bpe",
            "qwen2",
            "qwen35",
            "ufakzeka",
            "seed-coder",
            "minicpm5",
            "tekken",
            "gpt-4o",
            "deepseek-llm",
            "deepseek-coder",
            "deepseek-v3",
            "bloom",
            "viking",
            "laguna",
            "gemma4",
        ];
        let mut random = Random(20261129);
        for name in names {
            let pre = PreTokenizer::named(name).unwrap();
            let steps: Vec<_> = table(name).unwrap().0.iter().map(original).collect();
            for _ in 0..400 {
                let mut text = String::new();
                for _ in 0..random.below(24) {
                    let character = alphabet[random.below(alphabet.len() as u64) as usize];
                    let run = if random.below(4) == 0 { 1 + random.below(4) } else { 1 };
                    text.extend((0..run).map(|_| character));
                }
                assert_eq!(pieces(&pre, &text), reference(&steps, &text), "{name}: {text:?}");
            }
        }
    }

    #[test]
    fn names_what_it_does_not_know() {
        assert!(matches!(PreTokenizer::named("kimi-k2"), Err(Failure::Unsupported(_))));
    }
}
