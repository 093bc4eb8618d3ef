// tests/golden/v41/golden_file.h
// Arrays of the reference by name (convert.py wrote them), and the distance by which ours may be
// off.
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "model/safetensors.h"

namespace plumb::model {

// Aborts on anything unexpected: the file is ours.
class GoldenFile {
 public:
  explicit GoldenFile(const std::string& path) {
    auto file = Safetensors::Open(path);
    CHECK(file.ok()) << path << ": " << file.status().ToString();
    file_ = *std::move(file);
    for (const SafetensorsTensor& tensor : file_->tensors()) by_name_[tensor.name] = &tensor;
  }
  bool Has(const std::string& name) const { return by_name_.contains(name); }
  std::vector<float> Floats(const std::string& name) const { return Values<float>(name, "F32"); }
  std::vector<int32_t> Integers(const std::string& name) const {
    return Values<int32_t>(name, "I32");
  }
  // The length of the last dimension.
  uint64_t Columns(const std::string& name) const { return Tensor(name).row_elements(); }

 private:
  const SafetensorsTensor& Tensor(const std::string& name) const {
    CHECK(Has(name)) << name;
    return *by_name_.at(name);
  }
  template <typename T>
  std::vector<T> Values(const std::string& name, const char* type) const {
    const SafetensorsTensor& tensor = Tensor(name);
    CHECK(tensor.type_name == type) << name << " is " << tensor.type_name;
    std::vector<T> values(tensor.elements);
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }

  std::unique_ptr<Safetensors> file_;
  std::map<std::string, const SafetensorsTensor*> by_name_;
};

// The largest difference, relative to the largest value of the reference.
inline double RelativeError(std::span<const float> ours, std::span<const float> theirs) {
  CHECK(ours.size() == theirs.size()) << ours.size() << " for " << theirs.size();
  double difference = 0, size = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double d = std::abs(double{ours[i]} - double{theirs[i]});
    if (!(d <= difference)) difference = d;  // NaN stays
    size = std::max(size, std::abs(double{theirs[i]}));
  }
  return difference / (size + 1e-30);
}

}  // namespace plumb::model
