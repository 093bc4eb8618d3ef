// api/embedding_writer.cc
// See embedding_writer.h. Base64 is of the numbers' bytes: f32, little-endian.
#include "api/embedding_writer.h"

#include <bit>
#include <utility>

#include "api/json_writer.h"
#include "base/base64.h"
#include "base/check.h"

namespace plumb::api {
namespace {

std::string LittleEndian(std::span<const float> numbers) {
  std::string bytes;
  bytes.reserve(numbers.size() * sizeof(float));
  for (const float number : numbers) {
    const auto bits = std::bit_cast<uint32_t>(number);
    for (uint32_t shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<char>(bits >> shift & 0xFF));
    }
  }
  return bytes;
}

}  // namespace

EmbeddingWriter::EmbeddingWriter(AnswerHead head, EmbeddingEncoding encoding, uint32_t inputs)
    : head_(std::move(head)), encoding_(encoding), embeddings_(inputs) {}

void EmbeddingWriter::Begin(std::string_view) {}

void EmbeddingWriter::Embedding(uint32_t prompt, std::span<const float> embedding) {
  std::string& out = embeddings_.at(prompt);
  CHECK(out.empty() && !embedding.empty()) << "embedding of input " << prompt;
  JsonWriter json(out);
  if (encoding_ == EmbeddingEncoding::kBase64) {
    json.String(base::EncodeBase64(LittleEndian(embedding)));
    return;
  }
  json.BeginArray();
  for (const float number : embedding) json.Float(number);
  json.EndArray();
}

std::string EmbeddingWriter::Whole(std::span<const SampleAnswer> samples,
                                   const AnswerUsage& usage) {
  CHECK(samples.size() == embeddings_.size()) << samples.size();
  constexpr size_t kAround = 64;  // bytes about each embedding
  size_t bytes = 4 * kAround;
  for (const std::string& embedding : embeddings_) bytes += embedding.size() + kAround;
  std::string out;
  out.reserve(bytes);
  JsonWriter json(out);
  json.BeginObject().Key("object").String("list").Key("data").BeginArray();
  for (uint32_t i = 0; i < embeddings_.size(); ++i) {
    CHECK(!embeddings_[i].empty()) << "no embedding of input " << i;
    json.BeginObject().Key("object").String("embedding").Key("index").Uint(i);
    json.Key("embedding").Raw(std::exchange(embeddings_[i], {})).EndObject();
  }
  json.EndArray().Key("model").String(head_.model).Key("usage").BeginObject();
  json.Key("prompt_tokens").Uint(usage.prompt_tokens);
  json.Key("total_tokens").Uint(usage.prompt_tokens).EndObject().EndObject();
  return out;
}

namespace {
constexpr std::string_view kNoStream = "embeddings are not streamed";
}  // namespace

void EmbeddingWriter::StartStream(std::string&) { CHECK(false) << kNoStream; }
void EmbeddingWriter::Part(uint32_t, const text::AnswerDelta&,
                           std::span<const engine::TokenLogprob>, std::string&) {
  CHECK(false) << kNoStream;
}
void EmbeddingWriter::EndSample(uint32_t, const SampleEnd&, std::string&) {
  CHECK(false) << kNoStream;
}
void EmbeddingWriter::EndStream(const AnswerUsage&, std::string&) { CHECK(false) << kNoStream; }
void EmbeddingWriter::Fail(const ApiError&, std::string&) { CHECK(false) << kNoStream; }

}  // namespace plumb::api
