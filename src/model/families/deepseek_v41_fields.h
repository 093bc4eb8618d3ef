// model/families/deepseek_v41_fields.h
// The keys of a DeepSeek-V4.1 config.json, as tables: counts and their ranges, numbers, fields of
// which one value is computed, and keys that change nothing. A key is known in the object whose
// table it stands in, nowhere else. Ranges hold the released model and tiny ones; what is a
// multiple of 32 is so because blocks and groups of the stored formats are. Internal to
// deepseek_v41_config.cc.
#pragma once

#include <cstdint>

#include "model/config.h"
#include "model/families/deepseek_v41_config.h"

namespace plumb::model {

struct CountField {
  const char* key;
  uint32_t DeepseekConfig::* field;
  uint32_t min;
  uint32_t max;
  uint32_t multiple = 1;
};
constexpr CountField kCounts[] = {
    {"vocab_size", &DeepseekConfig::vocabulary, 1, kVocabularyMax},
    {"hidden_size", &DeepseekConfig::hidden, 32, kEmbeddingMax, 32},
    {"num_hidden_layers", &DeepseekConfig::layer_count, 1, kLayersMax},
    {"max_position_embeddings", &DeepseekConfig::context_max, 1, kContextMax},
    {"num_attention_heads", &DeepseekConfig::heads, 1, kHeadsMax},
    {"head_dim", &DeepseekConfig::head_dim, 32, 1024, 32},
    {"qk_rope_head_dim", &DeepseekConfig::rope_dims, 2, 1024, 2},
    {"q_lora_rank", &DeepseekConfig::query_rank, 32, kEmbeddingMax, 32},
    {"o_lora_rank", &DeepseekConfig::output_rank, 32, kEmbeddingMax, 32},
    {"o_groups", &DeepseekConfig::output_groups, 1, kHeadsMax},
    {"sliding_window", &DeepseekConfig::window, 1, 1u << 14},
    {"index_n_heads", &DeepseekConfig::index_heads, 1, kHeadsMax},
    {"index_head_dim", &DeepseekConfig::index_dim, 32, 1024, 32},
    {"index_topk", &DeepseekConfig::index_top, 1, 1u << 14},
    {"n_routed_experts", &DeepseekConfig::experts, 1, 1024},
    {"num_experts_per_tok", &DeepseekConfig::experts_used, 1, 64},
    {"moe_intermediate_size", &DeepseekConfig::expert_width, 32, kFeedForwardMax, 32},
    {"hc_mult", &DeepseekConfig::streams, 1, 8},
    {"hc_sinkhorn_iters", &DeepseekConfig::sinkhorn_iterations, 1, 1000},
};
constexpr CountField kCandidateCounts[] = {
    {"candidate_topk_blocks", &DeepseekConfig::candidate_blocks, 1, 1u << 16},
    {"candidate_block_size", &DeepseekConfig::candidate_block_rows, 1, 1u << 10},
};
constexpr CountField kEngramCounts[] = {
    {"engram_max_ngram_size", &DeepseekConfig::engram_ngram_max, 2, 8},
    {"engram_n_heads", &DeepseekConfig::engram_heads, 1, 32},
    {"engram_head_dim", &DeepseekConfig::engram_head_dim, 32, 1024, 32},
    {"engram_pad_token_id", &DeepseekConfig::engram_pad_token, 0, kVocabularyMax - 1},
    {"engram_compressed_vocab_size", &DeepseekConfig::engram_classes, 1, kVocabularyMax},
};
constexpr CountField kDraftCounts[] = {
    {"dspark_n_routed_experts", &DeepseekConfig::draft_experts, 1, 1024},
    {"dspark_markov_rank", &DeepseekConfig::draft_rank, 1, kEmbeddingMax},
};
constexpr uint64_t kEngramLayersMax = 16;
constexpr uint64_t kEngramRowsMax = uint64_t{1} << 38;
constexpr uint64_t kEngramBucketMax = uint64_t{1} << 32;
constexpr uint64_t kDraftBlocksMax = 16;

struct RealField {
  const char* key;
  float DeepseekConfig::* field;
  double min;
  double max;
};
constexpr RealField kReals[] = {
    {"rms_norm_eps", &DeepseekConfig::rms_epsilon, 1e-37, 1},
    {"routed_scaling_factor", &DeepseekConfig::expert_scale, 1e-6, 1e6},
    {"swiglu_limit", &DeepseekConfig::swiglu_limit, 1e-6, 1e6},
    {"hc_eps", &DeepseekConfig::hyper_epsilon, 1e-30, 1},
};

struct YarnField {
  const char* key;
  double DeepseekYarn::* field;
  double min;
  double max;
};
constexpr YarnField kYarnReals[] = {
    {"factor", &DeepseekYarn::factor, 1, 1e6},
    {"beta_fast", &DeepseekYarn::beta_fast, 1e-3, 1e6},
    {"beta_slow", &DeepseekYarn::beta_slow, 1e-3, 1e6},
    {"original_max_position_embeddings", &DeepseekYarn::original_positions, 1, kContextMax},
};

// Fields with one value that is computed; each may be left out.
struct FixedField {
  const char* key;
  const char* value;  // JSON
};
constexpr FixedField kFixed[] = {
    {"hidden_act", "\"silu\""},
    {"scoring_func", "\"sqrtsoftplus\""},
    {"topk_method", "\"noaux_tc\""},
    {"norm_topk_prob", "true"},
    {"n_shared_experts", "1"},
    {"num_key_value_heads", "1"},
    {"attention_bias", "false"},
    {"mlp_bias", "false"},
    {"tie_word_embeddings", "false"},
    {"hc_shifted", "true"},
    {"use_fp4_sparse_kv", "true"},
    {"dspark_target_attn_input", "true"},
    {"n_group", "1"},
    {"topk_group", "1"},
    {"num_hash_layers", "0"},
    {"first_k_dense_replace", "0"},
    {"moe_layer_freq", "1"},
};
constexpr FixedField kQuantisation[] = {
    {"quant_method", "\"fp8\""},          {"fmt", "\"e4m3\""},
    {"activation_scheme", "\"dynamic\""}, {"weight_block_size", "[32,32]"},
    {"scale_fmt", "\"ue8m0\""},           {"expert_dtype", "\"fp4\""},
};
constexpr FixedField kYarn[] = {
    {"rope_type", "\"yarn\""}, {"type", "\"yarn\""}, {"mscale", "1"},
    {"mscale_all_dim", "1"},   {"truncate", "true"}, {"attention_factor", "1"},
};
constexpr const char* kYarnKeys[] = {"rope_theta"};  // text_config's once more

// Of text_config, read one by one.
constexpr const char* kTextKeys[] = {
    "rope_theta",
    "compress_rope_theta",
    "rope_scaling",
    "compress_ratios",
    "kv_source_layer_ids",
    "index_k_source_layer_ids",
    "index_source_layer_ids",
    "candidate_source_layer_id",
    "engram_layer_ids",
    "engram_num_embeddings",
    "engram_vocab_size",
    "num_nextn_predict_layers",
    "dspark_target_layer_ids",
};
// Integers that the draft blocks alone will use.
constexpr const char* kDraftKeys[] = {
    "dspark_block_size",
    "dspark_noise_token_id",
    "dspark_num_experts_per_tok",
};
// Of the file itself. What is in vision_config is for images alone, which are not computed yet.
constexpr const char* kTopKeys[] = {
    "quantization_config",
    "text_config",
    "vision_config",
    "image_token_id",
};
// Of both: say how a model was trained, stored or named, or how transformers runs it.
constexpr const char* kHarmless[] = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "auto_map",
    "bos_token_id",
    "chunk_size_feed_forward",
    "dtype",
    "eos_token_id",
    "ep_size",
    "id2label",
    "initializer_range",
    "label2id",
    "language_model_only",
    "model_type",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "problem_type",
    "return_dict",
    "sentence_level_mask",
    "tokenizer_class",
    "tokenizer_compatibility",
    "torch_dtype",
    "transformers_version",
    "use_cache",
};

}  // namespace plumb::model
