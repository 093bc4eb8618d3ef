// model/gguf.cc
// Opening a file, and what its directory is asked. The checks are in gguf_parse.cc.
#include "model/gguf.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace plumb::model {

using base::Result;
using base::Status;

Result<std::unique_ptr<Gguf>> Gguf::Open(const std::string& path) {
  auto file = base::MappedFile::Open(path);
  if (!file.ok()) {
    // Its message holds the path, which may be the server's secret: replaced.
    const base::Code code = file.status().code();
    if (code == base::Code::kNotFound) return base::NotFound("the model file does not exist");
    if (code == base::Code::kInvalidArgument) {
      return base::InvalidArgument("model", "the model file is empty or not a regular file");
    }
    return Status(code, "the model file cannot be mapped into memory");
  }
  ASSIGN_OR_RETURN(auto gguf, Parse((*file)->bytes()));
  gguf->file_ = *std::move(file);
  return gguf;
}

const GgufTensor* Gguf::FindTensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

Result<std::span<const std::byte>> Gguf::Rows(const GgufTensor& tensor, RowRange range,
                                              tensor::AlignedBuffer& /*scratch*/) const {
  const uint64_t rows = tensor.elements / tensor.dims[0];
  CHECK(range.first <= rows && range.count <= rows - range.first) << tensor.name;
  const uint64_t row_bytes = tensor.bytes.size() / rows;
  return tensor.bytes.subspan(range.first * row_bytes, range.count * row_bytes);
}

std::string Gguf::Format() const { return fmt::format("GGUF {}", version_); }

}  // namespace plumb::model
