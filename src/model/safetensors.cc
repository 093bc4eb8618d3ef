// model/safetensors.cc
// The header is read event by event, not into a document: so its depth is bounded, a name that
// occurs twice is seen, and nothing is allocated that a tensor's entry does not need. Then the
// places of all tensors are checked together.
#include "model/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/bytes.h"

namespace plumb::model {
namespace {

using base::Corrupt;
using base::Result;
using base::Status;
using base::Unsupported;

struct TypeEntry {
  std::string_view name;
  StoredType type;
  uint32_t bytes;
};
constexpr TypeEntry kTypes[] = {
    {"F32", StoredType::kF32, 4},       {"F16", StoredType::kF16, 2},
    {"BF16", StoredType::kBF16, 2},     {"F8_E4M3", StoredType::kF8E4M3, 1},
    {"F8_E5M2", StoredType::kOther, 1}, {"F8_E8M0", StoredType::kOther, 1},
    {"F64", StoredType::kOther, 8},     {"I64", StoredType::kOther, 8},
    {"I32", StoredType::kOther, 4},     {"I16", StoredType::kOther, 2},
    {"I8", StoredType::kOther, 1},      {"U64", StoredType::kOther, 8},
    {"U32", StoredType::kOther, 4},     {"U16", StoredType::kOther, 2},
    {"U8", StoredType::kOther, 1},      {"BOOL", StoredType::kOther, 1},
};

const TypeEntry* FindType(std::string_view name) {
  for (const TypeEntry& entry : kTypes) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

// What a header says, for a message.
std::string Printable(std::string_view text) {
  std::string shown(text.substr(0, 40));
  for (char& c : shown) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return shown;
}

bool GoodName(std::string_view name) {
  return !name.empty() && name.size() <= kSafetensorsNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= 0x21 && c <= 0x7e; });
}

// The parser holds a number or a text whole, some times over, before it is judged: so none may be
// long. What is no JSON is left to the parser.
Status CheckLengths(std::string_view header) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0;
  while (i < header.size()) {
    const size_t begin = i;
    if (header[i] == '"') {
      for (++i; i < header.size() && header[i] != '"'; ++i) {
        if (header[i] == '\\') ++i;
      }
      if (i - begin > kSafetensorsTextBytesMax) {
        return Unsupported(fmt::format("the safetensors header has a text of more than {} bytes",
                                       kSafetensorsTextBytesMax));
      }
      ++i;
    } else if (digit(header[i])) {
      while (i < header.size() && digit(header[i])) ++i;
      if (i - begin > kSafetensorsNumberBytesMax) {
        return Corrupt(fmt::format("the safetensors header has a number of more than {} digits",
                                   kSafetensorsNumberBytesMax));
      }
    } else {
      ++i;
    }
  }
  return base::OkStatus();
}

// An entry as it stands in the header.
struct Entry {
  std::string name;
  std::optional<std::string> type;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
};

// Takes {"name": {"dtype": text, "shape": [n...], "data_offsets": [begin, end]}, ...,
// "__metadata__": {text: text}} and nothing else. A handler returns false to stop.
class HeaderHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Status TakeStatus() { return std::move(status_); }
  std::vector<Entry>& entries() { return entries_; }

  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) return Go(Place::kTop);
    if (place_ == Place::kEntryValue) return Go(Place::kEntry);
    if (place_ == Place::kMetadataValue) return Go(Place::kMetadata);
    return Unexpected("an object");
  }
  bool key(string_t& name) override {
    if (place_ == Place::kTop) return TopKey(name);
    if (place_ == Place::kMetadata) return true;
    if (name == "dtype") return EntryKey(entries_.back().type.has_value(), Place::kType);
    if (name == "shape") return EntryKey(entries_.back().shape.has_value(), Place::kShape);
    if (name == "data_offsets") {
      return EntryKey(entries_.back().offsets.has_value(), Place::kOffsets);
    }
    return Fail(Corrupt(fmt::format("tensor {} has an unknown field", entries_.back().name)));
  }
  bool end_object() override {
    if (place_ == Place::kTop) return Go(Place::kEnd);
    if (place_ == Place::kMetadata) return Go(Place::kTop);
    const Entry& entry = entries_.back();
    if (!entry.type || !entry.shape || !entry.offsets) {
      return Fail(Corrupt(fmt::format("tensor {} lacks dtype, shape or data_offsets", entry.name)));
    }
    return Go(Place::kTop);
  }
  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kType) return Unexpected("text");
    entries_.back().type = std::move(value);
    return Go(Place::kEntry);
  }
  bool start_array(std::size_t) override {
    if (place_ == Place::kShape) {
      entries_.back().shape.emplace();
      return Go(Place::kShapeItems);
    }
    if (place_ == Place::kOffsets) {
      entries_.back().offsets.emplace();
      return Go(Place::kOffsetsItems);
    }
    return Unexpected("an array");
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShapeItems) return Append(*entries_.back().shape, value);
    if (place_ == Place::kOffsetsItems) return Append(*entries_.back().offsets, value);
    return Unexpected("a number");
  }
  bool end_array() override { return Go(Place::kEntry); }
  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a bool"); }
  bool number_integer(number_integer_t) override { return Unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t& text) override {
    const bool whole = text.find_first_of(".eE") == text.npos;
    return Unexpected(whole ? "a number of more than 64 bits" : "a fraction");
  }
  bool binary(binary_t&) override { return Unexpected("bytes"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(
        Corrupt(fmt::format("the safetensors header is no JSON from byte {} on", position)));
  }

 private:
  enum class Place : uint8_t {
    kStart,
    kTop,
    kMetadataValue,
    kMetadata,
    kEntryValue,
    kEntry,
    kType,
    kShape,
    kShapeItems,
    kOffsets,
    kOffsetsItems,
    kEnd,
  };

  bool Go(Place place) {
    place_ = place;
    return true;
  }
  bool Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
    return false;
  }
  bool Unexpected(std::string_view what) {
    const std::string where =
        entries_.empty() ? "at its beginning" : "in or after tensor " + entries_.back().name;
    return Fail(Corrupt(fmt::format("the safetensors header has {} {}", what, where)));
  }
  bool TopKey(std::string& name) {
    if (name == "__metadata__") {
      if (std::exchange(metadata_seen_, true)) {
        return Fail(Corrupt("the safetensors header has two __metadata__"));
      }
      return Go(Place::kMetadataValue);
    }
    if (!GoodName(name)) {
      return Fail(Corrupt("a tensor's name is empty, too long or not printable ASCII"));
    }
    if (entries_.size() == kSafetensorsTensorsMax) {
      return Fail(
          Unsupported(fmt::format("more than {} tensors in one file", kSafetensorsTensorsMax)));
    }
    if (!names_.insert(name).second) {
      return Fail(Corrupt(fmt::format("the tensor {} occurs twice", name)));
    }
    entries_.emplace_back().name = std::move(name);
    return Go(Place::kEntryValue);
  }
  bool EntryKey(bool seen, Place next) {
    if (!seen) return Go(next);
    return Fail(Corrupt(fmt::format("tensor {} has a field twice", entries_.back().name)));
  }
  bool Append(std::vector<uint64_t>& values, uint64_t value) {
    if (values.size() == kSafetensorsDimsMax) {
      return Fail(Unsupported(fmt::format("tensor {} has more than {} dimensions",
                                          entries_.back().name, kSafetensorsDimsMax)));
    }
    values.push_back(value);
    return true;
  }

  Place place_ = Place::kStart;
  bool metadata_seen_ = false;
  std::vector<Entry> entries_;
  std::set<std::string> names_;
  Status status_;
};

// The tensor of an entry, its bytes within `data`.
Result<SafetensorsTensor> Place(Entry& entry, std::span<const std::byte> data) {
  SafetensorsTensor tensor;
  const TypeEntry* type = FindType(*entry.type);
  if (type == nullptr) {
    return Unsupported(
        fmt::format("tensor {} has the unknown dtype {}", entry.name, Printable(*entry.type)));
  }
  tensor.name = std::move(entry.name);
  tensor.type = type->type;
  tensor.type_name = type->name;
  tensor.element_bytes = type->bytes;
  tensor.dims_count = static_cast<uint32_t>(entry.shape->size());
  tensor.dims.fill(1);
  tensor.elements = 1;
  for (uint32_t i = 0; i < tensor.dims_count; ++i) {
    tensor.dims[i] = (*entry.shape)[i];
    const auto product = base::CheckedMul(tensor.elements, tensor.dims[i]);
    if (!product || *product == 0 || *product > (uint64_t{1} << 48)) {
      return Corrupt(
          fmt::format("tensor {} has an impossible dimension {}", tensor.name, tensor.dims[i]));
    }
    tensor.elements = *product;
  }
  if (entry.offsets->size() != 2 || (*entry.offsets)[0] > (*entry.offsets)[1]) {
    return Corrupt(fmt::format("tensor {}: data_offsets are no range", tensor.name));
  }
  const uint64_t begin = (*entry.offsets)[0];
  const uint64_t size = (*entry.offsets)[1] - begin;
  // Cannot overflow: elements <= 2^48 and an element is at most 8 bytes.
  if (size != tensor.elements * tensor.element_bytes) {
    return Corrupt(fmt::format("tensor {} has {} bytes, but its shape and dtype need {}",
                               tensor.name, size, tensor.elements * tensor.element_bytes));
  }
  if (begin > data.size() || size > data.size() - begin) {
    return Corrupt(fmt::format(
        "tensor {} ends at byte {} of the data, but there are {}: the file looks truncated; fetch "
        "it again",
        tensor.name, (*entry.offsets)[1], data.size()));
  }
  tensor.bytes = data.subspan(begin, size);
  return tensor;
}

// The format leaves no gap, so that no byte of a file goes unread.
Status CheckPlaces(std::vector<SafetensorsTensor>& tensors, std::span<const std::byte> data) {
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.bytes.data() < b.bytes.data(); });
  const std::byte* end = data.data();
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.bytes.data() != end) {
      return Corrupt(fmt::format("tensor {} {} the tensor before it", tensor.name,
                                 tensor.bytes.data() < end ? "overlaps" : "leaves a gap after"));
    }
    end += tensor.bytes.size();
  }
  const auto rest = static_cast<uint64_t>(data.data() + data.size() - end);
  if (rest == 0) return base::OkStatus();
  return Corrupt(fmt::format("the safetensors file has {} bytes that belong to no tensor", rest));
}

}  // namespace

Result<std::unique_ptr<Safetensors>> Safetensors::Parse(std::span<const std::byte> bytes) {
  base::ByteReader reader(bytes);
  const auto header_size = reader.Read<uint64_t>();
  if (!header_size) return Corrupt("the safetensors file is shorter than its header");
  if (*header_size > kSafetensorsHeaderBytesMax) {
    return Unsupported(
        fmt::format("the safetensors header has {} bytes; at most {} are accepted "
                    "(is it a safetensors file?)",
                    *header_size, kSafetensorsHeaderBytesMax));
  }
  const auto header = reader.TakeText(*header_size);
  if (!header) {
    return Corrupt(
        fmt::format("the safetensors file looks truncated: its header has {} bytes, {} "
                    "are there; fetch it again",
                    *header_size, reader.remaining()));
  }
  if (!header->starts_with('{')) return Corrupt("not safetensors: the header is no JSON object");
  RETURN_IF_ERROR(CheckLengths(*header));
  HeaderHandler handler;
  if (!nlohmann::json::sax_parse(header->begin(), header->end(), &handler)) {
    return handler.TakeStatus();
  }
  std::unique_ptr<Safetensors> file(new Safetensors());
  file->bytes_ = bytes;
  const std::span<const std::byte> data = bytes.subspan(reader.offset());
  file->tensors_.reserve(handler.entries().size());
  for (Entry& entry : handler.entries()) {
    ASSIGN_OR_RETURN(SafetensorsTensor tensor, Place(entry, data));
    file->tensors_.push_back(std::move(tensor));
  }
  RETURN_IF_ERROR(CheckPlaces(file->tensors_, data));
  return file;
}

Result<std::unique_ptr<Safetensors>> Safetensors::Open(const std::string& path,
                                                       std::string_view name) {
  auto mapped = base::MappedFile::Open(path);
  if (!mapped.ok()) {
    // Its message holds the path, which may be the server's secret: replaced.
    const base::Code code = mapped.status().code();
    if (code == base::Code::kNotFound) return base::NotFound("the file does not exist");
    if (code == base::Code::kInvalidArgument) {
      return Corrupt("the file is empty or not a regular file");
    }
    return Status(code, "the file cannot be mapped into memory");
  }
  ASSIGN_OR_RETURN(auto file, Parse((*mapped)->bytes()));
  file->file_ = *std::move(mapped);
  file->name_ = name;
  return file;
}

}  // namespace plumb::model
