// model/families/plain_forward.h
// For tests: every family's forward pass in double precision, one row and one number at a time,
// written from the papers' formulas and sharing no arithmetic with the library. Slow; tiny models.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/token_id.h"
#include "model/config.h"
#include "model/gguf.h"
#include "tensor/dequantize.h"

namespace plumb::model {

class PlainForward {
 public:
  using Row = std::vector<double>;

  PlainForward(const Checkpoint& checkpoint, const Config& config)
      : checkpoint_(checkpoint), c_(config), gemma_(config.family == Family::kGemma3) {}

  // Logits of every position: [tokens][vocabulary].
  std::vector<Row> Run(std::span<const base::TokenId> tokens) {
    std::vector<Row> x;
    for (const base::TokenId token : tokens) {
      x.push_back(Matrix("token_embd.weight")[base::Index(token)]);
      if (!gemma_) continue;
      for (double& value : x.back()) value *= std::sqrt(double(c_.embedding));
    }
    for (uint32_t i = 0; i < c_.layers; ++i) {
      const std::string block = "blk." + std::to_string(i) + ".";
      Attention(i, block, x);
      for (Row& row : x) {
        const Row normed = Norm(row, block + "ffn_norm.weight");
        Row out = c_.experts > 0 ? Experts(block, normed) : Gated(block, "", 0, normed);
        if (gemma_) out = Norm(out, block + "post_ffw_norm.weight");
        AddTo(row, out);
      }
    }
    std::vector<Row> logits;
    for (const Row& row : x) {
      Row y = Times(Matrix(c_.tied_output ? "token_embd.weight" : "output.weight"),
                    Norm(row, "output_norm.weight"));
      if (c_.final_soft_cap > 0) {
        for (double& v : y) v = c_.final_soft_cap * std::tanh(v / c_.final_soft_cap);
      }
      logits.push_back(std::move(y));
    }
    return logits;
  }

 private:
  // All rows of a tensor, the experts' of a stack one after the other.
  const std::vector<Row>& Matrix(const std::string& name) {
    const auto [found, added] = matrices_.try_emplace(name);
    if (!added) return found->second;
    const GgufTensor* tensor = checkpoint_.FindTensor(name);
    CHECK(tensor != nullptr) << name;
    const uint64_t width = tensor->dims[0];
    const uint64_t count = tensor->elements / width;
    const uint64_t row_bytes = tensor->bytes.size() / count;
    std::vector<float> values(width);
    for (uint64_t i = 0; i < count; ++i) {
      CHECK(tensor::DequantizeRow(*tensor::DTypeFromGguf(tensor->type),
                                  tensor->bytes.subspan(i * row_bytes, row_bytes), values)
                .ok());
      found->second.emplace_back(values.begin(), values.end());
    }
    return found->second;
  }
  static void AddTo(Row& x, const Row& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  static double Dot(const Row& a, const Row& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  }
  static Row Times(std::span<const Row> matrix, const Row& x) {
    Row y;
    for (const Row& weights : matrix) y.push_back(Dot(weights, x));
    return y;
  }
  Row Project(const std::string& name, const Row& x) {
    Row y = Times(Matrix(name + ".weight"), x);
    if (checkpoint_.FindTensor(name + ".bias") != nullptr) AddTo(y, Matrix(name + ".bias")[0]);
    return y;
  }
  Row Norm(const Row& x, const std::string& name) {
    const double mean = Dot(x, x) / double(x.size());
    Row y = Matrix(name)[0];
    for (size_t i = 0; i < x.size(); ++i) y[i] *= x[i] / std::sqrt(mean + c_.rms_epsilon);
    return y;
  }

  // Head `head` of x at `position`, normalised if the family does, and rotated.
  Row Head(const Row& x, uint32_t head, const std::string& norm, size_t position, bool local) {
    Row y(x.begin() + head * c_.head_dim, x.begin() + (head + 1) * c_.head_dim);
    if (checkpoint_.FindTensor(norm) != nullptr) y = Norm(y, norm);
    const bool factors = checkpoint_.FindTensor("rope_freqs.weight") != nullptr;
    const double base = local ? c_.rope_base_local : c_.rope_base;
    const double scale = local ? 1 : c_.rope_scale;
    const uint32_t half = c_.rope_dims / 2;
    for (uint32_t i = 0; i < half; ++i) {
      double frequency = std::pow(base, -2.0 * i / c_.rope_dims) / scale;
      if (factors) frequency /= Matrix("rope_freqs.weight")[0][i];
      const double angle = double(position) * frequency;
      const bool adjacent = c_.rope_pairs == RotaryPairs::kAdjacent;
      double& a = y[adjacent ? 2 * i : i];
      double& b = y[adjacent ? 2 * i + 1 : i + half];
      const double first = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = first;
    }
    return y;
  }

  void Attention(uint32_t layer, const std::string& block, std::vector<Row>& x) {
    const uint32_t window = c_.layer_windows[layer];
    const bool local = gemma_ && window != 0;
    std::vector<Row> queries, values;
    std::vector<std::vector<Row>> keys(c_.kv_heads);
    for (size_t p = 0; p < x.size(); ++p) {
      const Row normed = Norm(x[p], block + "attn_norm.weight");
      queries.push_back(Project(block + "attn_q", normed));
      values.push_back(Project(block + "attn_v", normed));
      const Row key = Project(block + "attn_k", normed);
      for (uint32_t head = 0; head < c_.kv_heads; ++head) {
        keys[head].push_back(Head(key, head, block + "attn_k_norm.weight", p, local));
      }
    }
    for (size_t p = 0; p < x.size(); ++p) {
      Row mixed(size_t{c_.heads} * c_.head_dim);
      for (uint32_t head = 0; head < c_.heads; ++head) {
        const uint32_t kv_head = head / (c_.heads / c_.kv_heads);
        const Row query = Head(queries[p], head, block + "attn_q_norm.weight", p, local);
        const size_t begin = window != 0 && p + 1 > window ? p + 1 - window : 0;
        Row weights;
        for (size_t k = begin; k <= p; ++k) {
          weights.push_back(std::exp(Dot(query, keys[kv_head][k]) * c_.attention_scale));
        }
        const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
        for (size_t k = begin; k <= p; ++k) {
          for (uint32_t d = 0; d < c_.head_dim; ++d) {
            mixed[head * c_.head_dim + d] +=
                weights[k - begin] / total * values[k][kv_head * c_.head_dim + d];
          }
        }
      }
      Row out = Project(block + "attn_output", mixed);
      if (gemma_) out = Norm(out, block + "post_attention_norm.weight");
      AddTo(x[p], out);
    }
  }

  double Activation(double g) const {
    if (!gemma_) return g / (1 + std::exp(-g));
    return 0.5 * g * (1 + std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g)));
  }
  // `suffix` names a stack of experts, of which `expert` is taken.
  Row Gated(const std::string& block, const std::string& suffix, uint32_t expert, const Row& x) {
    const auto part = [&](const std::string& name, size_t outputs) {
      return std::span(Matrix(block + name + suffix + ".weight"))
          .subspan(expert * outputs, outputs);
    };
    const Row gate = Times(part("ffn_gate", c_.feed_forward), x);
    Row inner = Times(part("ffn_up", c_.feed_forward), x);
    for (size_t i = 0; i < inner.size(); ++i) inner[i] *= Activation(gate[i]);
    return Times(part("ffn_down", c_.embedding), inner);
  }
  Row Experts(const std::string& block, const Row& x) {
    Row shares = Times(Matrix(block + "ffn_gate_inp.weight"), x);
    for (double& share : shares) share = std::exp(share);
    const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
    std::vector<uint32_t> order(shares.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return shares[a] > shares[b]; });
    order.resize(c_.experts_used);
    double chosen = 0;
    for (const uint32_t expert : order) chosen += shares[expert];
    Row sum(x.size());
    for (const uint32_t expert : order) {
      Row out = Gated(block, "_exps", expert, x);
      for (double& v : out) v *= shares[expert] / (c_.expert_norm ? chosen : all);
      AddTo(sum, out);
    }
    return sum;
  }

  const Checkpoint& checkpoint_;
  const Config c_;
  const bool gemma_;
  std::map<std::string, std::vector<Row>> matrices_;
};

}  // namespace plumb::model
