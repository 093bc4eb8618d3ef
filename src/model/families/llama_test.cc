// model/families/llama_test.cc
// Two promises of Forward. It computes the architecture: against a plain double-precision forward
// written here from the papers' formulas. And it is exact: a row's logits are the same bits however
// the prompt is chunked, batched, threaded or which kernels run. Real models: tests/golden/logits.
#include "model/families/llama.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/load.h"
#include "model/tiny_model.h"
#include "tensor/cpu_features.h"
#include "tensor/dequantize.h"

namespace plumb::model {
namespace {

using base::TokenId;

// ---- a plain forward ----

class PlainForward {
 public:
  PlainForward(const Gguf& gguf, const Config& config) : gguf_(gguf), c_(config) {}

  // Logits of every position: [tokens][vocabulary].
  std::vector<std::vector<double>> Run(std::span<const TokenId> tokens) {
    std::vector<Row> x;
    for (const TokenId token : tokens) {
      x.push_back(Matrix("token_embd.weight")[base::Index(token)]);
    }
    for (uint32_t i = 0; i < c_.layers; ++i) {
      const std::string block = "blk." + std::to_string(i) + ".";
      Attention(block, x);
      for (Row& row : x) FeedForward(block, row);
    }
    std::vector<Row> logits;
    for (const Row& row : x) {
      logits.push_back(Times(c_.tied_output ? "token_embd.weight" : "output.weight",
                             Norm(row, "output_norm.weight")));
    }
    return logits;
  }

 private:
  using Row = std::vector<double>;

  std::vector<Row> Matrix(const std::string& name) {
    const GgufTensor* tensor = gguf_.FindTensor(name);
    CHECK(tensor != nullptr) << name;
    const uint64_t width = tensor->dims[0];
    const uint64_t row_bytes = tensor->bytes.size() / tensor->dims[1];
    std::vector<Row> rows;
    std::vector<float> values(width);
    for (uint64_t i = 0; i < tensor->dims[1]; ++i) {
      CHECK(tensor::DequantizeRow(*tensor::DTypeFromGguf(tensor->type),
                                  tensor->bytes.subspan(i * row_bytes, row_bytes), values)
                .ok());
      rows.emplace_back(values.begin(), values.end());
    }
    return rows;
  }
  Row Times(const std::string& name, const Row& x) {
    Row y;
    for (const Row& weights : Matrix(name)) {
      double sum = 0;
      for (size_t i = 0; i < x.size(); ++i) sum += weights[i] * x[i];
      y.push_back(sum);
    }
    return y;
  }
  Row Project(const std::string& name, const Row& x) {
    Row y = Times(name + ".weight", x);
    if (gguf_.FindTensor(name + ".bias") == nullptr) return y;
    const Row bias = Matrix(name + ".bias")[0];
    for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i];
    return y;
  }
  Row Norm(const Row& x, const std::string& name) {
    double square = 0;
    for (const double v : x) square += v * v;
    const double scale = 1 / std::sqrt(square / static_cast<double>(x.size()) + c_.rms_epsilon);
    Row y = Matrix(name)[0];
    for (size_t i = 0; i < x.size(); ++i) y[i] *= x[i] * scale;
    return y;
  }
  // Head `head` of x at `position`, rotated.
  Row Rotated(const Row& x, uint32_t head, size_t position) {
    Row y(x.begin() + head * c_.head_dim, x.begin() + (head + 1) * c_.head_dim);
    const bool factors = gguf_.FindTensor("rope_freqs.weight") != nullptr;
    const uint32_t half = c_.rope_dims / 2;
    for (uint32_t i = 0; i < half; ++i) {
      double frequency = std::pow(double{c_.rope_base}, -2.0 * i / c_.rope_dims);
      if (factors) frequency /= Matrix("rope_freqs.weight")[0][i];
      const double angle = static_cast<double>(position) * frequency;
      const bool adjacent = c_.rope_pairs == RotaryPairs::kAdjacent;
      double& a = y[adjacent ? 2 * i : i];
      double& b = y[adjacent ? 2 * i + 1 : i + half];
      const double first = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = first;
    }
    return y;
  }
  void Attention(const std::string& block, std::vector<Row>& x) {
    std::vector<Row> queries, keys, values;
    for (const Row& row : x) {
      const Row normed = Norm(row, block + "attn_norm.weight");
      queries.push_back(Project(block + "attn_q", normed));
      keys.push_back(Project(block + "attn_k", normed));
      values.push_back(Project(block + "attn_v", normed));
    }
    for (size_t p = 0; p < x.size(); ++p) {
      Row mixed(c_.heads * c_.head_dim);
      for (uint32_t head = 0; head < c_.heads; ++head) {
        const uint32_t kv_head = head / (c_.heads / c_.kv_heads);
        const Row query = Rotated(queries[p], head, p);
        const size_t begin =
            c_.sliding_window != 0 && p + 1 > c_.sliding_window ? p + 1 - c_.sliding_window : 0;
        Row weights;
        double total = 0;
        for (size_t k = begin; k <= p; ++k) {
          const Row key = Rotated(keys[k], kv_head, k);
          double score = 0;
          for (uint32_t d = 0; d < c_.head_dim; ++d) score += query[d] * key[d];
          weights.push_back(std::exp(score / std::sqrt(double(c_.head_dim))));
          total += weights.back();
        }
        for (size_t k = begin; k <= p; ++k) {
          for (uint32_t d = 0; d < c_.head_dim; ++d) {
            mixed[head * c_.head_dim + d] +=
                weights[k - begin] / total * values[k][kv_head * c_.head_dim + d];
          }
        }
      }
      const Row out = Project(block + "attn_output", mixed);
      for (size_t i = 0; i < out.size(); ++i) x[p][i] += out[i];
    }
  }
  void FeedForward(const std::string& block, Row& x) {
    const Row normed = Norm(x, block + "ffn_norm.weight");
    const Row gate = Times(block + "ffn_gate.weight", normed);
    Row inner = Times(block + "ffn_up.weight", normed);
    for (size_t i = 0; i < inner.size(); ++i) inner[i] *= gate[i] / (1 + std::exp(-gate[i]));
    const Row out = Times(block + "ffn_down.weight", inner);
    for (size_t i = 0; i < out.size(); ++i) x[i] += out[i];
  }

  const Gguf& gguf_;
  const Config c_;
};

// ---- helpers ----

// A model of a tiny file, and the means to run it.
class Runner {
 public:
  Runner(const std::string& file, uint32_t threads, const tensor::KernelTable& kernels,
         uint32_t rows_max = 512)
      : pool_({.threads = threads}) {
    auto gguf = Gguf::Parse(std::as_bytes(std::span(file)));
    CHECK(gguf.ok()) << gguf.status().ToString();
    auto model = LoadModel(
        **gguf,
        {.pool = pool_, .kernels = kernels, .rows_max = rows_max, .logits_rows_max = rows_max});
    CHECK(model.ok()) << model.status().ToString();
    model_ = *std::move(model);
  }
  Model& model() { return *model_; }
  uint32_t vocabulary() const { return model_->info().vocabulary_size; }

 private:
  tensor::ThreadPool pool_;
  std::unique_ptr<Model> model_;
};

// A sequence's tokens and pages; pages begin filled with 0xff, which reads as NaN.
struct Sequence {
  Sequence(const Model& model, std::vector<TokenId> sequence_tokens)
      : tokens(std::move(sequence_tokens)) {
    const size_t count = (tokens.size() + kPageTokens - 1) / kPageTokens;
    memory.assign(count, std::vector<std::byte>(model.info().page_bytes, std::byte{0xff}));
    for (auto& page : memory) pages.push_back(page.data());
  }
  // The next `count` tokens as rows, with logits for each.
  SequenceRows Take(uint32_t count) {
    const SequenceRows rows{std::span(tokens).subspan(done, count), done, pages, count};
    done += count;
    return rows;
  }
  uint32_t left() const { return static_cast<uint32_t>(tokens.size()) - done; }

  std::vector<TokenId> tokens;
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::byte*> pages;
  uint32_t done = 0;
};

std::vector<TokenId> RandomTokens(size_t count, uint32_t vocabulary, uint64_t seed) {
  base::Rng rng(seed);
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<TokenId>(rng.Below(vocabulary)));
  }
  return tokens;
}

// Logits of every position, the prompt given in chunks of `chunk()` tokens.
template <typename Chunk>
std::vector<float> RunAlone(Model& model, const std::vector<TokenId>& tokens, Chunk chunk) {
  Sequence sequence(model, tokens);
  const uint64_t vocabulary = model.info().vocabulary_size;
  std::vector<float> logits(tokens.size() * vocabulary);
  while (sequence.left() > 0) {
    const uint32_t begin = sequence.done;
    const uint32_t count = std::min<uint32_t>(sequence.left(), chunk());
    const SequenceRows rows[] = {sequence.Take(count)};
    model.Forward(rows, std::span(logits).subspan(begin * vocabulary, count * vocabulary));
  }
  return logits;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

const tensor::KernelTable& Fastest() { return **tensor::SelectKernels("auto"); }

// Every quantisation of the models at hand; 256 inputs so that K blocks fit.
TinyModelSpec MixedSpec() {
  return {.embedding = 256,
          .feed_forward = 512,
          .heads = 16,
          .kv_heads = 4,
          .vocabulary = 70,
          .types = {8, 2, 3, 6, 7, 12, 13, 14, 1, 30, 0},
          .embedding_type = 14,
          .tied_output = false,
          .tokenizer = false};
}

// ---- the architecture ----

TEST(LlamaModel, ComputesWhatThePapersSay) {
  struct Case {
    const char* name;
    TinyModelSpec spec;
  };
  const Case cases[] = {
      {"llama", {.tokenizer = false}},
      {"llama untied", {.tied_output = false, .tokenizer = false}},
      {"llama 3 frequencies", {.rope_freqs = true, .tokenizer = false}},
      {"mistral window", {.sliding_window = 50, .tokenizer = false}},
      {"one kv head per head", {.kv_heads = 4, .tokenizer = false}},
      {"wide heads", {.heads = 2, .kv_heads = 1, .head_dim = 48, .tokenizer = false}},
      {"qwen2", {.architecture = "qwen2", .qkv_bias = true, .tokenizer = false}},
  };
  for (const Case& c : cases) {
    TinyModelSpec spec = c.spec;
    spec.types = {0};
    spec.embedding_type = 0;
    spec.vocabulary = 40;
    const std::string file = TinyModel(spec);
    auto gguf = Gguf::Parse(std::as_bytes(std::span(file)));
    ASSERT_TRUE(gguf.ok()) << gguf.status().ToString();
    const std::vector<TokenId> tokens = RandomTokens(140, spec.vocabulary, 3);
    const auto expected = PlainForward(**gguf, *ReadConfig(**gguf)).Run(tokens);
    Runner runner(file, 2, Fastest());
    const std::vector<float> logits = RunAlone(runner.model(), tokens, [] { return 200; });
    double largest = 0, error = 0;
    for (size_t p = 0; p < tokens.size(); ++p) {
      for (uint32_t t = 0; t < spec.vocabulary; ++t) {
        largest = std::max(largest, std::abs(expected[p][t]));
        error = std::max(error, std::abs(expected[p][t] - logits[p * spec.vocabulary + t]));
      }
    }
    EXPECT_GT(largest, 0.5) << c.name;
    // Keys and values rounded to f16 (2^-11) are the largest error by far.
    EXPECT_LT(error, 4 * 0x1p-11 * largest) << c.name;
  }
}

// ---- exactness ----

TEST(LlamaModel, ChunksDoNotChangeABit) {
  for (const TinyModelSpec& spec : {MixedSpec(), TinyModelSpec{.sliding_window = 100}}) {
    const std::string file = TinyModel(spec);
    Runner runner(file, 2, Fastest());
    const auto tokens = RandomTokens(300, runner.vocabulary(), 7);
    const auto whole = RunAlone(runner.model(), tokens, [] { return 512u; });
    for (const float logit : whole) ASSERT_TRUE(std::isfinite(logit));
    EXPECT_TRUE(SameBits(whole, RunAlone(runner.model(), tokens, [] { return 1u; })));
    base::Rng rng(11);
    for (int round = 0; round < 8; ++round) {
      const uint64_t bound = round % 2 == 0 ? 150 : 12;
      EXPECT_TRUE(SameBits(whole, RunAlone(runner.model(), tokens, [&] {
                             return static_cast<uint32_t>(1 + rng.Below(bound));
                           })));
    }
  }
}

TEST(LlamaModel, BatchMatesDoNotChangeABit) {
  const std::string file = TinyModel(MixedSpec());
  Runner runner(file, 2, Fastest());
  const uint32_t vocabulary = runner.vocabulary();
  std::vector<std::vector<float>> alone;
  std::vector<Sequence> sequences;
  for (uint32_t i = 0; i < 7; ++i) {
    const auto tokens = RandomTokens(20 + 41 * i, vocabulary, i);
    alone.push_back(RunAlone(runner.model(), tokens, [] { return 512u; }));
    sequences.emplace_back(runner.model(), tokens);
  }
  // Steps of random composition: prompts, decode rows and all between; the wanted logits vary too.
  base::Rng rng(3);
  uint32_t compared = 0;
  for (;;) {
    std::vector<SequenceRows> step;
    std::vector<uint32_t> who;
    uint32_t room = 60, wanted = 0;
    for (uint32_t i = 0; i < sequences.size(); ++i) {
      if (sequences[i].left() == 0 || room == 0 || rng.Below(4) == 0) continue;
      const uint64_t bound = rng.Below(2) == 0 ? 1 : 40;
      const uint32_t count =
          std::min({sequences[i].left(), room, static_cast<uint32_t>(1 + rng.Below(bound))});
      step.push_back(sequences[i].Take(count));
      step.back().logits_rows = static_cast<uint32_t>(rng.Below(count + 1));
      wanted += step.back().logits_rows;
      who.push_back(i);
      room -= count;
    }
    if (step.empty()) {
      if (std::all_of(sequences.begin(), sequences.end(),
                      [](const Sequence& s) { return s.left() == 0; })) {
        break;
      }
      continue;
    }
    std::vector<float> logits(uint64_t{wanted} * vocabulary);
    runner.model().Forward(step, logits);
    std::span<const float> next = logits;
    for (size_t i = 0; i < step.size(); ++i) {
      const uint64_t count = uint64_t{step[i].logits_rows} * vocabulary;
      const uint64_t end = uint64_t{sequences[who[i]].done} * vocabulary;
      EXPECT_TRUE(
          SameBits(next.first(count), std::span(alone[who[i]]).subspan(end - count, count)));
      next = next.subspan(count);
      compared += step[i].logits_rows;
    }
  }
  EXPECT_GT(compared, 100u);
}

TEST(LlamaModel, ThreadsAndKernelsDoNotChangeABit) {
  const std::string file = TinyModel(MixedSpec());
  std::vector<float> expected;
  for (const tensor::KernelTable* kernels : tensor::AllKernels()) {
    for (const uint32_t threads : {1u, 3u}) {
      Runner runner(file, threads, *kernels);
      const auto tokens = RandomTokens(150, runner.vocabulary(), 9);
      const auto logits = RunAlone(runner.model(), tokens, [] { return 64u; });
      if (expected.empty()) expected = logits;
      EXPECT_TRUE(SameBits(expected, logits)) << kernels->name << ", " << threads << " threads";
    }
  }
  EXPECT_GE(tensor::AllKernels().size(), 1u);
}

// What a sealed page holds must not change when later rows arrive, nor by how it was computed.
TEST(LlamaModel, PagesHoldTheSameBytesHoweverTheyWereFilled) {
  const std::string file = TinyModel(MixedSpec());
  Runner runner(file, 2, Fastest());
  const auto tokens = RandomTokens(kPageTokens + 30, runner.vocabulary(), 13);
  Sequence whole(runner.model(), tokens), pieces(runner.model(), tokens);
  std::vector<float> logits(tokens.size() * runner.vocabulary());
  const SequenceRows all[] = {whole.Take(whole.left())};
  runner.model().Forward(all, logits);
  while (pieces.left() > 0) {
    SequenceRows rows[] = {pieces.Take(std::min(pieces.left(), 17u))};
    rows[0].logits_rows = 0;
    runner.model().Forward(rows, {});
  }
  EXPECT_EQ(whole.memory, pieces.memory);
}

TEST(LlamaModelDeathTest, RefusesWhatCannotBeComputed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string file = TinyModel({.context = 16, .tokenizer = false});
  Runner runner(file, 1, Fastest(), 8);
  Sequence sequence(runner.model(), RandomTokens(8, runner.vocabulary(), 1));
  std::vector<float> logits(8 * runner.vocabulary());
  const auto run = [&](std::vector<TokenId> tokens, uint32_t position, uint32_t logits_rows,
                       bool pages) {
    const std::span<std::byte* const> all(sequence.pages);
    const SequenceRows rows[] = {{tokens, position, pages ? all : all.first(0), logits_rows}};
    runner.model().Forward(rows, logits);
  };
  const std::vector<TokenId> one = {TokenId{1}};
  EXPECT_DEATH(run({}, 0, 0, true), "rows");
  EXPECT_DEATH(run(RandomTokens(9, 10, 1), 0, 0, true), "rows");
  EXPECT_DEATH(run({TokenId{320}}, 0, 1, true), "320");
  EXPECT_DEATH(run(one, 16, 1, true), "context 16");
  EXPECT_DEATH(run(one, 0, 1, false), "0 pages");
  EXPECT_DEATH(run(one, 0, 2, true), "2");
  EXPECT_DEATH(run(one, 0, 1, true), "logits.size");  // the span is too long for one row
}

}  // namespace
}  // namespace plumb::model
