// rust/include/plumb_rust.h: the C ABI of the Rust library, for src/text and base/hash.cc only.
// Ownership: a plumb_view is borrowed for the call; what a function fills is the caller's, freed by
// the function named beside it; a handle is freed once, by its _free. Handles are immutable: any
// thread, any number at a time; but a plumb_grammar_state is one thread's at a time. A panic
// becomes PLUMB_INTERNAL. A function that returns a code leaves its outputs empty on error and puts
// a message in *error.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  PLUMB_OK = 0,
  PLUMB_INVALID = 1,      // the caller's input
  PLUMB_UNSUPPORTED = 2,  // a kind of input that is not built here; the message names it
  PLUMB_LIMIT = 3,        // a step, depth or size limit was met
  PLUMB_INTERNAL = 4,     // a bug in here; survivable
  PLUMB_BUSY = 5,         // a thread or the like is not to be had now
};

typedef struct {
  const uint8_t* data;
  size_t size;
} plumb_view;
typedef struct {
  uint8_t* data;
  size_t size;
  size_t capacity;
} plumb_buffer;
typedef struct {
  uint32_t* data;
  size_t size;
  size_t capacity;
} plumb_ids;

void plumb_buffer_free(plumb_buffer buffer);
void plumb_ids_free(plumb_ids ids);

// BLAKE3 (hash.rs)

// The 32-byte hash of the parts, one after the other. Allocates nothing and cannot fail.
void plumb_blake3(const plumb_view* parts, size_t count, uint8_t* out);

// tokenizers (tokenizer_abi.rs)

typedef struct plumb_tokenizer plumb_tokenizer;

// A vocabulary as a GGUF file gives it. Tokens and merges that are not UTF-8 are PLUMB_INVALID.
typedef struct {
  plumb_view model;          // "gpt2", "gemma4", "llama", "bert"
  plumb_view pre;            // name of the pre-tokenizer; may be empty
  const plumb_view* tokens;  // [count], index = id
  const float* scores;       // [count] or NULL; no NaN
  const uint8_t* kinds;      // [count], values of text::TokenKind
  size_t count;
  const plumb_view* merges;  // [merge_count], "left right", by rank
  size_t merge_count;
  uint32_t unknown;          // id, or UINT32_MAX
  uint8_t add_space_prefix;  // "llama" only
  const uint32_t* before;    // ids that stand before a text when specials are asked for
  size_t before_count;
  const uint32_t* after;  // and after it
  size_t after_count;
} plumb_vocabulary;

int32_t plumb_tokenizer_from_vocabulary(const plumb_vocabulary* vocabulary, plumb_tokenizer** out,
                                        plumb_buffer* error);
// With `ids_max` != 0, added tokens with an id from there on are left out, and other entries there
// are refused.
int32_t plumb_tokenizer_from_json(plumb_view json, uint32_t ids_max, plumb_tokenizer** out,
                                  plumb_buffer* error);
void plumb_tokenizer_free(plumb_tokenizer* tokenizer);

uint32_t plumb_tokenizer_size(const plumb_tokenizer* tokenizer);
// Borrowed for the tokenizer's life; empty at or above its size.
plumb_view plumb_tokenizer_name(const plumb_tokenizer* tokenizer, uint32_t id);
plumb_view plumb_tokenizer_bytes(const plumb_tokenizer* tokenizer, uint32_t id);
uint8_t plumb_tokenizer_is_control(const plumb_tokenizer* tokenizer, uint32_t id);

// `spelled`: a value of text::ControlTokens. PLUMB_INVALID: not UTF-8. *out is freed by
// plumb_ids_free.
int32_t plumb_tokenizer_encode(const plumb_tokenizer* tokenizer, plumb_view text, uint8_t spelled,
                               uint8_t add_special, plumb_ids* out, plumb_buffer* error);

// Where a text can be cut without changing its ids (not those of `add_special`): of each part in
// turn its bytes, and the id of the entry that it spells, or one of the values below for a text
// that plumb_tokenizer_encode_stretch takes. Texts are shorter than 2^32 bytes. *out is freed by
// plumb_ids_free.
#define PLUMB_TEXT_OPENS UINT32_MAX          // begins the whole, or follows an entry
#define PLUMB_TEXT_FOLLOWS (UINT32_MAX - 1)  // follows another text
int32_t plumb_tokenizer_cut(const plumb_tokenizer* tokenizer, plumb_view text, uint8_t spelled,
                            plumb_ids* out, plumb_buffer* error);
// The ids of such a part, with the same `spelled`. Errors and *out as of plumb_tokenizer_encode.
int32_t plumb_tokenizer_encode_stretch(const plumb_tokenizer* tokenizer, plumb_view text,
                                       uint8_t spelled, uint8_t opens, plumb_ids* out,
                                       plumb_buffer* error);

// text::DeepseekTokenClasses. *out is freed by plumb_ids_free.
int32_t plumb_tokenizer_classes(const plumb_tokenizer* tokenizer, plumb_ids* out,
                                plumb_buffer* error);

// chat templates (template_abi.rs)

typedef struct plumb_template plumb_template;

typedef struct {
  plumb_view bos_token;
  plumb_view eos_token;
  plumb_view date;  // "29 Nov 2026"; empty = a fixed epoch date
} plumb_template_variables;

int32_t plumb_template_compile(plumb_view source, plumb_template_variables variables,
                               plumb_template** out, plumb_buffer* error);
void plumb_template_free(plumb_template* compiled);

enum {
  PLUMB_VALUE_NULL = 0,
  PLUMB_VALUE_FALSE = 1,
  PLUMB_VALUE_TRUE = 2,
  PLUMB_VALUE_INTEGER = 3,
  PLUMB_VALUE_DOUBLE = 4,
  PLUMB_VALUE_TEXT = 5,
  PLUMB_VALUE_LIST = 6,
  PLUMB_VALUE_OBJECT = 7,
};

// Values are written flat: after a list stand its items, after an object its members, each a name
// (a text) and a value. A name that stands twice has the last value in the first place.
typedef struct {
  uint8_t kind;
  plumb_view text;
  union {
    int64_t integer;
    double number;
    uint64_t count;  // of items or members
  };
} plumb_value;

// The first of the values is an object; its members become the template's variables beside those
// above. PLUMB_INVALID: the template raised an exception or does not take this input.
int32_t plumb_template_render_values(const plumb_template* compiled, const plumb_value* values,
                                     size_t count, size_t output_bytes_max, plumb_buffer* out,
                                     plumb_buffer* error);

// grammars (grammar_abi.rs)

typedef struct plumb_grammar_vocabulary plumb_grammar_vocabulary;
typedef struct plumb_grammar plumb_grammar;
typedef struct plumb_grammar_state plumb_grammar_state;

// What all grammars over a tokenizer share; needs the tokenizer for this call alone.
int32_t plumb_grammar_vocabulary_new(const plumb_tokenizer* tokenizer, const uint32_t* end_tokens,
                                     size_t end_count, plumb_grammar_vocabulary** out,
                                     plumb_buffer* error);
void plumb_grammar_vocabulary_free(plumb_grammar_vocabulary* vocabulary);

typedef struct {
  uint8_t kind;  // a value of text::GrammarKind
  plumb_view source;
  const plumb_view* choices;
  size_t choice_count;
  plumb_view end_text;  // stands after the grammar; empty when nothing or a token does
  uint32_t end_token;   // or UINT32_MAX
} plumb_grammar_spec;

// PLUMB_INVALID: malformed, or it allows nothing; PLUMB_UNSUPPORTED: it cannot be enforced, the
// message names what; PLUMB_LIMIT: too large, or not done in `ms_max`; PLUMB_BUSY: too many that
// were not done in time still run. Keeps the vocabulary alive, as a state its grammar.
int32_t plumb_grammar_compile(const plumb_grammar_vocabulary* vocabulary,
                              const plumb_grammar_spec* spec, uint32_t ms_max, plumb_grammar** out,
                              plumb_buffer* error);
void plumb_grammar_free(plumb_grammar* grammar);

int32_t plumb_grammar_state_new(const plumb_grammar* grammar, plumb_grammar_state** out,
                                plumb_buffer* error);
void plumb_grammar_state_free(plumb_grammar_state* state);

// The functions of text::GrammarState. PLUMB_LIMIT: the grammar is too complex at this place.
int32_t plumb_grammar_state_mask(plumb_grammar_state* state, uint32_t* mask, size_t words,
                                 plumb_buffer* error);
// *accepted is 0, and nothing changed, when the token is not allowed.
int32_t plumb_grammar_state_accept(plumb_grammar_state* state, uint32_t token, uint8_t* accepted,
                                   plumb_buffer* error);
int32_t plumb_grammar_state_rollback(plumb_grammar_state* state, size_t count, plumb_buffer* error);
int32_t plumb_grammar_state_count_allowed(plumb_grammar_state* state, const uint32_t* tokens,
                                          size_t count, size_t* allowed, plumb_buffer* error);
int32_t plumb_grammar_state_forced(plumb_grammar_state* state, size_t max, plumb_ids* out,
                                   plumb_buffer* error);
int32_t plumb_grammar_state_complete(plumb_grammar_state* state, uint8_t* complete,
                                     plumb_buffer* error);

#ifdef __cplusplus
}
#endif
