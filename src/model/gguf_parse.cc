// model/gguf_parse.cc
// One pass over the file: header, metadata, tensor directory, then the checks that need all of it
// (alignment, sizes, overlap). Reads never run ahead of what base::ByteReader grants; a read that
// wants more than there is reports a truncated file, since that is what a broken download looks
// like.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "model/gguf.h"
#include "model/hf_text.h"

namespace plumb::model {
namespace {

using base::Corrupt;
using base::Result;
using base::Status;
using base::Unsupported;

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kTypes = 13;
constexpr uint64_t kAlignmentDefault = 32;

constexpr std::string_view kTypeNames[kTypes] = {"uint8",  "int8",    "uint16", "int16", "uint32",
                                                 "int32",  "float32", "bool",   "text",  "array",
                                                 "uint64", "int64",   "float64"};
// Bytes of one value; 0 = variable.
constexpr uint8_t kTypeBytes[kTypes] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// Shape of a block of ggml's tensor types (source: ggml.h and ggml-common.h). All are listed whose
// size we can check, also those without kernels here, so that `model inspect` can show such files.
struct TensorType {
  uint32_t type;
  const char* name;
  uint32_t block_elements;
  uint32_t block_bytes;
};
constexpr TensorType kTensorTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
};

const TensorType* FindTensorType(uint32_t type) {
  for (const TensorType& entry : kTensorTypes) {
    if (entry.type == type) return &entry;
  }
  return nullptr;
}

bool PrintableAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x21 && c <= 0x7e; });
}

}  // namespace

std::string_view GgufTypeName(GgufType type) {
  const auto index = static_cast<uint32_t>(type);
  return index < kTypes ? kTypeNames[index] : "unknown";
}

std::string GgufTensorTypeName(uint32_t type) {
  const TensorType* entry = FindTensorType(type);
  return entry != nullptr ? entry->name : fmt::format("type {}", type);
}

// Fills a Gguf; lives only during Parse.
class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, Gguf& gguf)
      : bytes_(bytes), reader_(bytes), gguf_(gguf) {}

  Status Run() {
    RETURN_IF_ERROR(Header());
    for (uint64_t i = 0; i < key_count_; ++i) RETURN_IF_ERROR(Key());
    RETURN_IF_ERROR(Alignment());
    gguf_.tensors_.reserve(std::min<uint64_t>(tensor_count_, kGgufTensorsMax));
    for (uint64_t i = 0; i < tensor_count_; ++i) RETURN_IF_ERROR(Tensor());
    return Data();
  }

 private:
  // `wanted` more bytes were announced at the reader's place than there are.
  Status Truncated(uint64_t wanted, std::string_view what) const {
    const uint64_t missing = wanted - std::min(wanted, reader_.remaining());
    return Corrupt(fmt::format(
        "the GGUF file looks truncated: at least {} bytes are missing (in {}, at byte {} of {}); "
        "fetch it again",
        missing, what, reader_.offset(), bytes_.size()));
  }

  template <typename T>
  Result<T> Read(std::string_view what) {
    auto value = reader_.Read<T>();
    if (!value) return Truncated(sizeof(T), what);
    return *value;
  }

  Result<std::string_view> ReadText(std::string_view what, uint64_t size_max) {
    ASSIGN_OR_RETURN(const uint64_t size, Read<uint64_t>(what));
    if (size > size_max) {
      return Unsupported(
          fmt::format("GGUF: {} has {} bytes; at most {} are accepted", what, size, size_max));
    }
    auto text = reader_.TakeText(size);
    if (!text) return Truncated(size, what);
    return *text;
  }

  Result<std::string_view> ReadName(std::string_view what) {
    ASSIGN_OR_RETURN(const std::string_view name, ReadText(what, kGgufNameBytesMax));
    if (name.empty() || !PrintableAscii(name)) {
      return Corrupt(fmt::format("GGUF: {} is empty or not printable ASCII", what));
    }
    return name;
  }

  Status Header() {
    ASSIGN_OR_RETURN(const uint32_t magic, Read<uint32_t>("the header"));
    if (magic != kMagic) return Corrupt("not a GGUF file: it does not begin with \"GGUF\"");
    ASSIGN_OR_RETURN(gguf_.version_, Read<uint32_t>("the header"));
    if (gguf_.version_ != 2 && gguf_.version_ != 3) {
      const bool swapped = (gguf_.version_ & 0xffffu) == 0;
      return Unsupported(
          swapped ? "GGUF: big-endian files are not supported"
                  : fmt::format("GGUF: version {} is not supported (2 and 3 are)", gguf_.version_));
    }
    ASSIGN_OR_RETURN(tensor_count_, Read<uint64_t>("the header"));
    ASSIGN_OR_RETURN(key_count_, Read<uint64_t>("the header"));
    if (tensor_count_ > kGgufTensorsMax) {
      return Unsupported(
          fmt::format("GGUF: {} tensors; at most {} are accepted", tensor_count_, kGgufTensorsMax));
    }
    if (key_count_ > kGgufKeysMax) {
      return Unsupported(
          fmt::format("GGUF: {} metadata keys; at most {} are accepted", key_count_, kGgufKeysMax));
    }
    return base::OkStatus();
  }

  Result<GgufType> ReadType(std::string_view key) {
    ASSIGN_OR_RETURN(const uint32_t type, Read<uint32_t>(key));
    if (type >= kTypes) return Corrupt(fmt::format("GGUF: {} has the unknown type {}", key, type));
    return static_cast<GgufType>(type);
  }

  Status Key() {
    ASSIGN_OR_RETURN(const std::string_view key, ReadName("a metadata key"));
    ASSIGN_OR_RETURN(const GgufType type, ReadType(key));
    GgufValue value{type, type, 1, {}};
    if (type == GgufType::kArray) {
      ASSIGN_OR_RETURN(value.element_type, ReadType(key));
      ASSIGN_OR_RETURN(value.count, Read<uint64_t>(key));
      if (value.element_type == GgufType::kArray) {
        return Unsupported(fmt::format("GGUF: {} is an array of arrays", key));
      }
      if (value.count > kGgufArrayCountMax) {
        return Unsupported(fmt::format("GGUF: {} has {} elements; at most {} are accepted", key,
                                       value.count, kGgufArrayCountMax));
      }
    }
    ASSIGN_OR_RETURN(value.bytes, ReadElements(key, value));
    if (value.element_type == GgufType::kBool) {
      for (const std::byte b : value.bytes) {
        if (b > std::byte{1})
          return Corrupt(
              fmt::format("GGUF: {} holds a bool that is {}", key, static_cast<unsigned>(b)));
      }
    }
    if (!gguf_.values_.emplace(key, value).second) {
      return Corrupt(fmt::format("GGUF: the key {} occurs twice", key));
    }
    return base::OkStatus();
  }

  Result<std::span<const std::byte>> ReadElements(std::string_view key, const GgufValue& value) {
    if (value.type == GgufType::kText) {
      const uint64_t size_max = key == kHfTokenizerKey ? kHfTokenizerBytesMax : kGgufTextBytesMax;
      ASSIGN_OR_RETURN(const std::string_view text, ReadText(key, size_max));
      return std::as_bytes(std::span(text));
    }
    if (value.element_type == GgufType::kText) {
      const uint64_t begin = reader_.offset();
      for (uint64_t i = 0; i < value.count; ++i) {
        RETURN_IF_ERROR(ReadText(key, kGgufTextBytesMax));
      }
      return bytes_.subspan(begin, reader_.offset() - begin);
    }
    // Cannot overflow: count <= kGgufArrayCountMax.
    const uint64_t size = value.count * kTypeBytes[static_cast<uint32_t>(value.element_type)];
    auto taken = reader_.Take(size);
    if (!taken) return Truncated(size, key);
    return *taken;
  }

  Status Alignment() {
    if (!gguf_.Has("general.alignment")) return base::OkStatus();
    ASSIGN_OR_RETURN(alignment_, gguf_.Unsigned("general.alignment"));
    const bool power_of_two = alignment_ != 0 && (alignment_ & (alignment_ - 1)) == 0;
    if (!power_of_two || alignment_ > kGgufAlignmentMax) {
      return Corrupt(fmt::format("GGUF: general.alignment is {}, not a power of two up to {}",
                                 alignment_, kGgufAlignmentMax));
    }
    return base::OkStatus();
  }

  // One entry of the directory. `bytes` is set in Data(), when the place of the data is known;
  // until then offsets_ and sizes_ hold it.
  Status Tensor() {
    GgufTensor tensor{};
    ASSIGN_OR_RETURN(tensor.name, ReadName("a tensor name"));
    ASSIGN_OR_RETURN(tensor.dims_count, Read<uint32_t>(tensor.name));
    if (tensor.dims_count == 0 || tensor.dims_count > kGgufDimsMax) {
      return Unsupported(fmt::format("GGUF: tensor {} has {} dimensions; 1 to {} are accepted",
                                     tensor.name, tensor.dims_count, kGgufDimsMax));
    }
    tensor.dims.fill(1);
    tensor.elements = 1;
    for (uint32_t i = 0; i < tensor.dims_count; ++i) {
      ASSIGN_OR_RETURN(tensor.dims[i], Read<uint64_t>(tensor.name));
      const auto product = base::CheckedMul(tensor.elements, tensor.dims[i]);
      if (!product || *product == 0 || *product > (uint64_t{1} << 48)) {
        return Corrupt(fmt::format("GGUF: tensor {} has an impossible dimension {}", tensor.name,
                                   tensor.dims[i]));
      }
      tensor.elements = *product;
    }
    ASSIGN_OR_RETURN(tensor.type, Read<uint32_t>(tensor.name));
    ASSIGN_OR_RETURN(const uint64_t offset, Read<uint64_t>(tensor.name));
    const TensorType* type = FindTensorType(tensor.type);
    if (type == nullptr) {
      return Unsupported(
          fmt::format("GGUF: tensor {} has the unknown data type {}", tensor.name, tensor.type));
    }
    if (tensor.dims[0] % type->block_elements != 0) {
      return Corrupt(fmt::format("GGUF: tensor {}: rows of {} are no whole blocks of {}",
                                 tensor.name, tensor.dims[0], type->name));
    }
    if (offset % alignment_ != 0) {
      return Corrupt(fmt::format("GGUF: tensor {}: offset {} is not a multiple of {}", tensor.name,
                                 offset, alignment_));
    }
    const auto index = static_cast<uint32_t>(gguf_.tensors_.size());
    if (!gguf_.tensor_index_.emplace(tensor.name, index).second) {
      return Corrupt(fmt::format("GGUF: the tensor {} occurs twice", tensor.name));
    }
    offsets_.push_back(offset);
    // Cannot overflow: elements <= 2^48 and a block is at most 292 bytes.
    sizes_.push_back(tensor.elements / type->block_elements * type->block_bytes);
    tensor.stored_bytes = sizes_.back();
    tensor.stored_type = type->name;
    gguf_.tensors_.push_back(tensor);
    return base::OkStatus();
  }

  // Places every tensor in the data section: inside the file, and none over another. Files that
  // share data between tensors are unknown; overlap means a damaged or hostile directory.
  Status Data() {
    if (gguf_.tensors_.empty()) return base::OkStatus();  // vocabularies end without padding
    const uint64_t begin = (reader_.offset() + alignment_ - 1) / alignment_ * alignment_;
    std::vector<uint32_t> order(gguf_.tensors_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(offsets_[a], a) < std::pair(offsets_[b], b);
    });
    uint64_t end = begin;
    for (size_t i = 0; i < order.size(); ++i) {
      GgufTensor& tensor = gguf_.tensors_[order[i]];
      const auto first = base::CheckedAdd(begin, offsets_[order[i]]);
      const auto last = first ? base::CheckedAdd(*first, sizes_[order[i]]) : std::nullopt;
      if (!last) return Corrupt(fmt::format("GGUF: tensor {}: offset overflows", tensor.name));
      if (*first < end) {
        return Corrupt(fmt::format("GGUF: tensor {} overlaps {}", tensor.name,
                                   gguf_.tensors_[order[i - 1]].name));
      }
      end = *last;
      if (end <= bytes_.size()) tensor.bytes = bytes_.subspan(*first, *last - *first);
    }
    if (end > bytes_.size()) {
      return Corrupt(
          fmt::format("the GGUF file looks truncated: {} bytes are missing ({} are here, {} are "
                      "needed); fetch it "
                      "again",
                      end - bytes_.size(), bytes_.size(), end));
    }
    return base::OkStatus();
  }

  std::span<const std::byte> bytes_;
  base::ByteReader reader_;
  Gguf& gguf_;
  uint64_t tensor_count_ = 0;
  uint64_t key_count_ = 0;
  uint64_t alignment_ = kAlignmentDefault;
  std::vector<uint64_t> offsets_;  // from the start of the data section, by tensor
  std::vector<uint64_t> sizes_;    // bytes, by tensor
};

Result<std::unique_ptr<Gguf>> Gguf::Parse(std::span<const std::byte> bytes) {
  std::unique_ptr<Gguf> gguf(new Gguf());
  gguf->bytes_ = bytes;
  RETURN_IF_ERROR(GgufParser(bytes, *gguf).Run());
  return gguf;
}

}  // namespace plumb::model
