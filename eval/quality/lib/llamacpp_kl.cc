// eval/quality/lib/llamacpp_kl.cc
// What `plumb model perplexity --reference` measures, measured in llama.cpp through its C API: the
// same windows, positions and f64 sums over whole f32 logits. Why not llama-perplexity: its base
// file keeps log-probabilities in 16 bits above a floor. Built and called by kl_guard.sh.
#include <llama.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace {

[[noreturn]] void Die(const std::string& message) {
  std::cerr << "llamacpp_kl: " << message << "\n";
  std::exit(1);
}

struct Loaded {
  llama_model* model;
  llama_context* context;
  const llama_vocab* vocabulary;
  int32_t size;  // of the vocabulary
};

Loaded Load(const char* path, uint32_t context, int32_t threads) {
  llama_model_params model_params = llama_model_default_params();
  Loaded loaded{};
  loaded.model = llama_model_load_from_file(path, model_params);
  if (loaded.model == nullptr) Die(std::string("cannot load ") + path);
  llama_context_params params = llama_context_default_params();
  params.n_ctx = context;
  params.n_batch = context;
  params.n_threads = params.n_threads_batch = threads;
  loaded.context = llama_init_from_model(loaded.model, params);
  if (loaded.context == nullptr) Die("no context");
  loaded.vocabulary = llama_model_get_vocab(loaded.model);
  loaded.size = llama_vocab_n_tokens(loaded.vocabulary);
  return loaded;
}

std::vector<llama_token> Tokenize(const llama_vocab* vocabulary, const std::string& text) {
  std::vector<llama_token> tokens(text.size() + 8);
  const int32_t count =
      llama_tokenize(vocabulary, text.data(), static_cast<int32_t>(text.size()), tokens.data(),
                     static_cast<int32_t>(tokens.size()), true, false);
  if (count < 0) Die("cannot tokenize");
  tokens.resize(static_cast<size_t>(count));
  return tokens;
}

// A whole window at once, with logits from its middle on.
void Decode(const Loaded& loaded, const std::vector<llama_token>& window) {
  const auto count = static_cast<int32_t>(window.size());
  llama_memory_clear(llama_get_memory(loaded.context), true);
  llama_batch batch = llama_batch_init(count, 0, 1);
  batch.n_tokens = count;
  for (int32_t i = 0; i < count; ++i) {
    batch.token[i] = window[static_cast<size_t>(i)];
    batch.pos[i] = i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = i >= count / 2;
  }
  if (llama_decode(loaded.context, batch) != 0) Die("cannot decode");
  llama_batch_free(batch);
}

struct Row {
  const float* logits;
  int32_t size;
  int32_t likeliest;
  double log_sum;
  Row(const float* row, int32_t count) : logits(row), size(count) {
    likeliest = static_cast<int32_t>(std::max_element(row, row + count) - row);
    double sum = 0;
    for (int32_t i = 0; i < count; ++i) sum += std::exp(double{row[i]} - double{row[likeliest]});
    log_sum = double{row[likeliest]} + std::log(sum);
  }
  double LogProbability(int32_t token) const { return double{logits[token]} - log_sum; }
};

double KullbackLeibler(const Row& p, const Row& q) {
  double sum = 0;
  for (int32_t i = 0; i < p.size; ++i) {
    const double log_p = p.LogProbability(i);
    sum += std::exp(log_p) * (log_p - q.LogProbability(i));
  }
  return std::max(sum, 0.0);
}

struct Tally {
  double nll = 0, reference_nll = 0;
  uint64_t agreed = 0;
  std::vector<double> divergences;
};

void JudgeWindow(const Loaded& ours, const Loaded& theirs, const std::vector<llama_token>& window,
                 Tally& tally) {
  Decode(ours, window);
  Decode(theirs, window);
  for (size_t i = window.size() / 2; i + 1 < window.size(); ++i) {
    const auto place = static_cast<int32_t>(i);
    const Row q(llama_get_logits_ith(ours.context, place), ours.size);
    const Row p(llama_get_logits_ith(theirs.context, place), theirs.size);
    tally.nll -= q.LogProbability(window[i + 1]);
    tally.reference_nll -= p.LogProbability(window[i + 1]);
    tally.agreed += p.likeliest == q.likeliest ? 1 : 0;
    tally.divergences.push_back(KullbackLeibler(p, q));
  }
}

void Print(Tally& tally) {
  const auto count = static_cast<double>(tally.divergences.size());
  double sum = 0;
  for (const double one : tally.divergences) sum += one;
  std::sort(tally.divergences.begin(), tally.divergences.end());
  const size_t p99 = (tally.divergences.size() * 99 + 99) / 100 - 1;
  std::cout << std::setprecision(17) << "{\"positions\": " << tally.divergences.size()
            << ", \"perplexity\": " << std::exp(tally.nll / count)
            << ", \"reference_perplexity\": " << std::exp(tally.reference_nll / count)
            << ", \"kl\": {\"mean\": " << sum / count << ", \"p99\": " << tally.divergences[p99]
            << ", \"largest\": " << tally.divergences.back()
            << ", \"top1_agreement\": " << static_cast<double>(tally.agreed) / count << "}}\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    Die("usage: llamacpp_kl MODEL REFERENCE TEXT CONTEXT WINDOWS THREADS IDS_FILE");
  }
  const auto context = static_cast<uint32_t>(std::atoi(argv[4]));
  const auto windows = static_cast<size_t>(std::atoi(argv[5]));
  const int32_t threads = std::atoi(argv[6]);
  std::ifstream file(argv[3], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  const Loaded ours = Load(argv[1], context, threads);
  const Loaded theirs = Load(argv[2], context, threads);
  const std::vector<llama_token> tokens = Tokenize(ours.vocabulary, text);
  if (ours.size != theirs.size || tokens.size() < windows * context || windows == 0) {
    Die("different vocabularies, or too little text");
  }
  std::ofstream(argv[7], std::ios::binary)
      .write(reinterpret_cast<const char*>(tokens.data()),
             static_cast<std::streamsize>(tokens.size() * sizeof(llama_token)));
  Tally tally;
  for (size_t w = 0; w < windows; ++w) {
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(w * context);
    std::vector<llama_token> window(begin, begin + context);
    if (llama_vocab_get_add_bos(ours.vocabulary)) window[0] = llama_vocab_bos(ours.vocabulary);
    JudgeWindow(ours, theirs, window, tally);
    std::cerr << "llama.cpp: window " << w + 1 << " of " << windows << "\n";
  }
  Print(tally);
}
