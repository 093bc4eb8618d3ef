// model/quantize.cc
// A tensor passes in slabs of whole rows: read, split over the pool by rows, appended to the file.
#include "model/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "model/gguf_writer.h"
#include "tensor/dequantize.h"
#include "tensor/quantize_block.h"

namespace plumb::model {
namespace {

using base::Result;
using base::Status;
using tensor::DType;

constexpr uint64_t kSlabElements = 4u << 20;   // or one row, if that is longer
constexpr uint64_t kItemElements = 64u << 10;  // what a thread takes at once; or one row
constexpr uint32_t kQuantizationVersion = 2;   // of the block layouts, as llama.cpp counts

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

GgufWriter Describe(const Checkpoint& source, const QuantizePlan& plan) {
  GgufWriter writer;
  for (const auto& [key, value] : source.values()) {
    const bool replaced = key == "general.file_type" || key == "general.quantization_version" ||
                          key == "general.alignment" || key.starts_with("split.");
    if (!replaced) writer.Copy(key, value);
  }
  writer.Value("general.file_type", static_cast<uint32_t>(plan.type));
  writer.Value("general.quantization_version", kQuantizationVersion);
  for (const PlannedTensor& tensor : plan.tensors) {
    const std::span<const uint64_t> dims(tensor.source->dims);
    writer.Announce(tensor.source->name, tensor.type, dims.first(tensor.source->dims_count),
                    tensor.bytes);
  }
  return writer;
}

Status InTensor(const GgufTensor& tensor, uint64_t row, const Status& status) {
  return Status(status.code(),
                fmt::format("tensor {}, row {}: {}", tensor.name, row, status.message()))
      .WithField(std::string(tensor.name));
}

// Rows of one tensor from its stored type to another.
struct Conversion {
  DType from, to;
  uint64_t inputs;
  uint64_t from_row_bytes, to_row_bytes;

  Status Rows(std::span<const std::byte> in, std::span<std::byte> out, uint64_t& row) const {
    std::vector<float> values(inputs);
    for (row = 0; row * to_row_bytes < out.size(); ++row) {
      RETURN_IF_ERROR(
          DequantizeRow(from, in.subspan(row * from_row_bytes, from_row_bytes), values));
      RETURN_IF_ERROR(QuantizeRow(to, values, out.subspan(row * to_row_bytes, to_row_bytes)));
    }
    return base::OkStatus();
  }
};

// One writing. Thread: the caller's.
class QuantizeRun {
 public:
  QuantizeRun(const Checkpoint& source, const QuantizePlan& plan, const QuantizeOptions& options)
      : source_(source), plan_(plan), options_(options) {}

  Status Write(const std::string& path) {
    ASSIGN_OR_RETURN(file_, base::AppendFile::Open(path, 0));
    RETURN_IF_ERROR(file_->Append(Describe(source_, plan_).Head()));
    RETURN_IF_ERROR(Report());
    for (const PlannedTensor& tensor : plan_.tensors) {
      const uint64_t padding = GgufWriter::Aligned(end_) - end_;
      RETURN_IF_ERROR(file_->Append(std::string(padding, '\0')));
      end_ += padding + tensor.bytes;
      RETURN_IF_ERROR(WriteTensor(tensor));
    }
    return file_->Flush();
  }

 private:
  Status WriteTensor(const PlannedTensor& tensor) {
    const uint64_t inputs = tensor.source->dims[0];
    const uint64_t rows = tensor.source->elements / inputs;
    const uint64_t slab_rows = std::max<uint64_t>(kSlabElements / inputs, 1);
    for (uint64_t first = 0; first < rows; first += slab_rows) {
      const RowRange range{first, std::min(slab_rows, rows - first)};
      ASSIGN_OR_RETURN(const std::span<const std::byte> in,
                       source_.Rows(*tensor.source, range, scratch_));
      RETURN_IF_ERROR(tensor.copied() ? CopySlab(*tensor.source, range, in)
                                      : ConvertSlab(tensor, range, in));
      RETURN_IF_ERROR(Report());
    }
    return base::OkStatus();
  }

  Status CopySlab(const GgufTensor& tensor, RowRange range, std::span<const std::byte> in) {
    const auto dtype = tensor::DTypeFromGguf(tensor.type);
    if (dtype && !AllFinite(*dtype, in, options_.pool)) {
      return InTensor(tensor, range.first, base::Corrupt("here or below a value is not finite"));
    }
    written_ += in.size();
    return file_->Append(AsText(in));
  }

  Status ConvertSlab(const PlannedTensor& tensor, RowRange range, std::span<const std::byte> in) {
    Conversion convert{.from = tensor::DTypeFromGguf(tensor.source->type).value(),
                       .to = tensor::DTypeFromGguf(tensor.type).value(),
                       .inputs = tensor.source->dims[0]};
    ASSIGN_OR_RETURN(convert.from_row_bytes, tensor::RowBytes(convert.from, convert.inputs));
    ASSIGN_OR_RETURN(convert.to_row_bytes, tensor::RowBytes(convert.to, convert.inputs));
    out_.resize(range.count * convert.to_row_bytes);
    const uint64_t item_rows = std::max<uint64_t>(kItemElements / convert.inputs, 1);
    const uint64_t items = (range.count + item_rows - 1) / item_rows;
    struct Outcome {
      Status status;
      uint64_t row = 0;
    };
    std::vector<Outcome> outcomes(items);
    options_.pool.ParallelFor(static_cast<uint32_t>(items), [&](uint32_t item) {
      const uint64_t first = item * item_rows;
      const uint64_t count = std::min(item_rows, range.count - first);
      uint64_t row = 0;
      outcomes[item].status = convert.Rows(
          in.subspan(first * convert.from_row_bytes, count * convert.from_row_bytes),
          std::span(out_).subspan(first * convert.to_row_bytes, count * convert.to_row_bytes), row);
      outcomes[item].row = range.first + first + row;
    });
    for (const Outcome& outcome : outcomes) {
      if (!outcome.status.ok()) return InTensor(*tensor.source, outcome.row, outcome.status);
    }
    written_ += out_.size();
    return file_->Append(AsText(out_));
  }

  Status Report() const {
    if (options_.progress) options_.progress({written_, plan_.data_bytes});
    if (!options_.cancelled || !options_.cancelled()) return base::OkStatus();
    return Status(base::Code::kCancelled, "stopped before the file was complete");
  }

  const Checkpoint& source_;
  const QuantizePlan& plan_;
  const QuantizeOptions& options_;
  std::unique_ptr<base::AppendFile> file_;
  tensor::AlignedBuffer scratch_;
  std::vector<std::byte> out_;
  uint64_t written_ = 0;  // bytes of tensors
  uint64_t end_ = 0;      // of the data so far, with padding
};

}  // namespace

uint64_t QuantizedFileBytes(const Checkpoint& source, const QuantizePlan& plan) {
  uint64_t bytes = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    bytes = GgufWriter::Aligned(bytes) + tensor.bytes;
  }
  return bytes + Describe(source, plan).Head().size();
}

Status WriteQuantized(const Checkpoint& source, const QuantizePlan& plan,
                      const QuantizeOptions& options, const std::string& path) {
  return QuantizeRun(source, plan, options).Write(path);
}

}  // namespace plumb::model
