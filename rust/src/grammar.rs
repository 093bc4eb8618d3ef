//! Compiled grammars and where one answer stands in them, over llguidance. A mask is a function of
//! the accepted tokens alone. Answers of a grammar share the caches of its lexer, which only make
//! masks faster; what overruns a limit with them is tried once more without, so that what other
//! answers did refuses nobody. What takes too long of a processor (step_watch.rs) ends its answer.
//! Read next: grammar_source.rs (what is compiled), grammar_abi.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use llguidance::api::TopLevelGrammar;
use llguidance::{CancellationHandle, TokenParser};

use crate::abi::Failure;
use crate::grammar_vocabulary::GrammarVocabulary;

/// Processor time of one step: a mask, or taking a token. Usual are microseconds.
const STEP_TIME_MAX: Duration = Duration::from_millis(5);
/// Of the first mask, which is made once, when a grammar is compiled, and makes what others use.
const FIRST_TIME_MAX: Duration = Duration::from_millis(100);
/// Of an answer's steps together, beyond what each mask brings in: an answer whose masks are all
/// slow would hold up the others, too.
const CREDIT_MAX: Duration = Duration::from_millis(50);
const CREDIT_OF_MASK: Duration = Duration::from_millis(2);
/// Of taking all tokens once more, by a parser of its own; how often an answer may ask for it, and
/// after how many masks it may once more.
const REPLAY_TIME_MAX: Duration = Duration::from_millis(200);
const REPLAYS_MAX: u32 = 3;
pub(crate) const MASKS_OF_REPLAY: u32 = 256;

/// The first line of a message that may go on with a dump, cut to what a person reads.
pub fn first_line(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(300).collect()
}

/// Immutable; any thread.
pub struct Grammar {
    vocabulary: Arc<GrammarVocabulary>,
    cold: Mutex<TokenParser>, // as compiled
    warm: Mutex<TokenParser>, // its clones share their lexer's caches, up to max_lexer_states
    first_mask: Vec<u32>,
}

impl Grammar {
    /// Errors of llguidance come back as text: what they mean depends on the kind of source.
    pub fn compile(
        vocabulary: &Arc<GrammarVocabulary>,
        source: TopLevelGrammar,
    ) -> Result<Grammar, String> {
        let mut parser =
            vocabulary.factory.create_parser(source).map_err(|error| first_line(&error))?;
        parser.start_without_prompt();
        // Also tells whether the grammar allows anything, and warms what all its answers use.
        let mut first_mask = vec![0; vocabulary.size().div_ceil(32)];
        let mut first = parser.clone();
        let cancel = first.enable_cancellation();
        let watched = vocabulary.watch.begin(cancel.clone(), FIRST_TIME_MAX);
        let mask = first.compute_mask();
        drop(watched);
        if cancel.is_cancelled() {
            return Err("too complex: its first mask takes too long".into());
        }
        let mask = mask.map_err(|error| match first_line(&error).as_str() {
            "NoExtensionBias" => "unsatisfiable: nothing may be written".to_string(),
            message => message.to_string(),
        })?;
        copy_mask(mask.as_slice(), &mut first_mask);
        Ok(Grammar {
            vocabulary: vocabulary.clone(),
            cold: Mutex::new(parser.deep_clone()),
            warm: Mutex::new(parser),
            first_mask,
        })
    }

    // Neither lock is ever poisoned: nothing that may panic is done under it.
    fn shared_parser(&self) -> TokenParser {
        self.warm.lock().unwrap().clone()
    }

    /// A parser with caches of its own; those that were shared until now are left to who has them.
    fn own_parser(&self) -> TokenParser {
        let cold = self.cold.lock().unwrap();
        *self.warm.lock().unwrap() = cold.deep_clone();
        cold.deep_clone()
    }
}

fn copy_mask(from: &[u32], to: &mut [u32]) {
    let words = from.len().min(to.len());
    to[..words].copy_from_slice(&from[..words]);
    to[words..].fill(0);
}

/// Where one answer stands. One thread at a time.
pub struct State {
    grammar: Arc<Grammar>,
    parser: TokenParser,
    cancel: CancellationHandle, // the parser's
    tokens: Vec<u32>,
    ended: bool,      // an end token stands after `tokens`
    broken: bool,     // the parser met a limit: it must be built anew before its next use
    replays: u32,     // how often it was, less what masks have earned
    masks: u32,       // since one of those was earned
    credit: Duration, // what steps may still take; none: the answer cannot go on
    mask: Vec<u32>,   // of the present position, when mask_known
    mask_known: bool,
}

const TOO_SLOW: &str = "its masks take too long";

fn too_complex(why: &str) -> Failure {
    Failure::Limit(format!("the grammar is too complex here: {why}"))
}

impl State {
    pub fn new(grammar: &Arc<Grammar>) -> State {
        let mut parser = grammar.shared_parser();
        State {
            cancel: parser.enable_cancellation(),
            parser,
            tokens: Vec::new(),
            ended: false,
            broken: false,
            replays: 0,
            masks: 0,
            credit: CREDIT_MAX,
            mask: grammar.first_mask.clone(),
            mask_known: true,
            grammar: grammar.clone(),
        }
    }

    /// As the watch does with a step that takes too long, before one that has not begun.
    #[cfg(test)]
    pub(crate) fn hold_up(&self) {
        self.cancel.cancel();
    }

    fn is_end(&self, token: u32) -> bool {
        self.grammar.vocabulary.end_tokens.contains(&token)
    }

    /// One step of the parser; the error is that of a limit.
    fn step<T>(
        &mut self,
        limit: Duration,
        step: impl FnOnce(&mut TokenParser) -> anyhow::Result<T>,
    ) -> Result<T, Failure> {
        let watched = self.grammar.vocabulary.watch.begin(self.cancel.clone(), limit);
        // Another answer that panicked holding the shared caches makes this one panic, too.
        let result = catch_unwind(AssertUnwindSafe(|| step(&mut self.parser)));
        self.credit = self.credit.saturating_sub(watched.spent());
        drop(watched);
        if self.cancel.is_cancelled() || self.credit.is_zero() {
            return Err(too_complex(TOO_SLOW));
        }
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) if first_line(&error) == "NoExtensionBias" => {
                Err(Failure::Limit("the grammar allows nothing to follow here".into()))
            }
            Ok(Err(error)) => Err(too_complex(&first_line(&error))),
            Err(_) => Err(too_complex("its parser gave up")),
        }
    }

    /// Runs `step`; where it fails, once more on a parser of its own, which is what decides. Time
    /// that was too long once may have been the machine's: a virtual one may stand still for longer
    /// than a step may take, and its clocks call that work.
    fn twice<T>(
        &mut self,
        step: impl Fn(&mut TokenParser) -> anyhow::Result<T>,
    ) -> Result<T, Failure> {
        if self.credit.is_zero() {
            return Err(too_complex(TOO_SLOW));
        }
        if !self.broken {
            let first = self.step(STEP_TIME_MAX, &step);
            self.broken = first.is_err();
            if first.is_ok() || self.credit.is_zero() {
                return first;
            }
        }
        if self.replays == REPLAYS_MAX {
            return Err(too_complex("its limits are met again and again"));
        }
        self.replays += 1;
        self.replay()?;
        let value = self.step(STEP_TIME_MAX, &step)?;
        self.broken = false;
        Ok(value)
    }

    /// A parser of its own, which has taken all tokens. Its time is not the answer's.
    fn replay(&mut self) -> Result<(), Failure> {
        self.parser = self.grammar.own_parser();
        self.cancel = self.parser.enable_cancellation();
        let credit = std::mem::replace(&mut self.credit, Duration::MAX);
        let tokens = std::mem::take(&mut self.tokens);
        let taken = self.step(REPLAY_TIME_MAX, |parser| {
            tokens.iter().try_for_each(|token| parser.consume_token(*token).map(|_| ()))
        });
        self.tokens = tokens;
        self.credit = credit;
        taken
    }

    fn accepting(&mut self) -> Result<bool, Failure> {
        self.twice(|parser| Ok(parser.is_accepting()))
    }

    /// Nothing may follow but an end token. White space that a grammar would still skip does not
    /// count: it belongs between parts, not after the last.
    pub fn complete(&mut self) -> Result<bool, Failure> {
        if self.ended {
            return Ok(true);
        }
        self.twice(|parser| Ok(parser.is_accepting() && !parser.parser.can_advance()))
    }

    fn know_mask(&mut self) -> Result<(), Failure> {
        if self.mask_known {
            return Ok(());
        }
        if self.complete()? {
            self.mask.fill(0);
            for token in &self.grammar.vocabulary.end_tokens {
                self.mask[*token as usize / 32] |= 1 << (token % 32);
            }
        } else {
            let mask = self.twice(|parser| parser.compute_mask())?;
            copy_mask(mask.as_slice(), &mut self.mask);
            self.credit = CREDIT_MAX.min(self.credit + CREDIT_OF_MASK);
            self.masks += 1;
            if self.masks == MASKS_OF_REPLAY {
                self.masks = 0;
                self.replays = self.replays.saturating_sub(1);
            }
        }
        self.mask_known = true;
        Ok(())
    }

    pub fn fill_mask(&mut self, out: &mut [u32]) -> Result<(), Failure> {
        self.know_mask()?;
        copy_mask(&self.mask, out);
        Ok(())
    }

    /// Whether `token` may come next.
    fn allows(&mut self, token: u32) -> Result<bool, Failure> {
        if token as usize >= self.grammar.vocabulary.size() || self.ended {
            return Ok(false);
        }
        if self.mask_known {
            return Ok(self.mask[token as usize / 32] >> (token % 32) & 1 == 1);
        }
        if self.is_end(token) {
            return self.accepting();
        }
        if self.complete()? {
            return Ok(false);
        }
        self.twice(|parser| {
            let count = parser.validate_tokens_raw(&[token])?;
            match parser.parser.get_error() {
                Some(error) => Err(anyhow::anyhow!(error.message())),
                None => Ok(count == 1),
            }
        })
    }

    /// False, and nothing changed, when `token` is not allowed.
    pub fn accept(&mut self, token: u32) -> Result<bool, Failure> {
        if !self.allows(token)? {
            return Ok(false);
        }
        if self.is_end(token) {
            self.ended = true;
        } else {
            self.twice(|parser| parser.consume_token(token))?;
            self.tokens.push(token);
        }
        self.mask_known = false;
        Ok(true)
    }

    /// Takes back the newest `count` accepted tokens.
    pub fn rollback(&mut self, count: usize) -> Result<(), Failure> {
        let mut count = count;
        if count == 0 {
            return Ok(());
        }
        self.mask_known = false;
        if std::mem::take(&mut self.ended) {
            count -= 1;
        }
        if count > self.tokens.len() {
            return Err(Failure::Internal("more tokens are taken back than were accepted".into()));
        }
        self.tokens.truncate(self.tokens.len() - count);
        let taken_back = catch_unwind(AssertUnwindSafe(|| self.parser.rollback(count)));
        self.broken = self.broken || !matches!(taken_back, Ok(Ok(())));
        Ok(())
    }

    /// How many of `tokens` could be accepted in turn.
    pub fn count_allowed(&mut self, tokens: &[u32]) -> Result<usize, Failure> {
        let mut count = 0;
        for token in tokens {
            // What overruns a limit is not allowed; the state is as before either way.
            match self.accept(*token) {
                Ok(true) => count += 1,
                Ok(false) | Err(_) => break,
            }
        }
        self.rollback(count)?;
        Ok(count)
    }

    /// Tokens that are sure to follow: each is the only one that its mask allows.
    pub fn forced(&mut self, max: usize) -> Result<Vec<u32>, Failure> {
        let mut forced = Vec::new();
        while forced.len() < max && self.know_mask().is_ok() {
            let Some(token) = only_bit(&self.mask) else { break };
            if self.ended || !self.accept(token).unwrap_or(false) {
                break;
            }
            forced.push(token);
        }
        self.rollback(forced.len())?;
        Ok(forced)
    }
}

/// The index of the one bit that is set, if it is one.
fn only_bit(words: &[u32]) -> Option<u32> {
    let mut found = None;
    for (index, word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
        if found.is_some() || word.count_ones() != 1 {
            return None;
        }
        found = Some(index as u32 * 32 + word.trailing_zeros());
    }
    found
}
