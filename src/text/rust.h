// text/rust.h
// How this module speaks to the Rust library (rust/include/plumb_rust.h): borrowed views in, owned
// buffers and error codes out. Internal to text.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "plumb_rust.h"

namespace plumb::text {

inline plumb_view View(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string_view Text(plumb_view view) {
  return {reinterpret_cast<const char*>(view.data), view.size};
}

// A buffer that the library fills and we free; a resource type.
class RustBuffer {
 public:
  RustBuffer() = default;
  ~RustBuffer() { plumb_buffer_free(buffer_); }
  RustBuffer(const RustBuffer&) = delete;
  RustBuffer& operator=(const RustBuffer&) = delete;

  plumb_buffer* out() { return &buffer_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(buffer_.data), buffer_.size};
  }

 private:
  plumb_buffer buffer_ = {nullptr, 0, 0};
};

// Ids that the library fills in and we free; a resource type.
class RustIds {
 public:
  RustIds() = default;
  ~RustIds() { plumb_ids_free(ids_); }
  RustIds(const RustIds&) = delete;
  RustIds& operator=(const RustIds&) = delete;

  plumb_ids* out() { return &ids_; }
  std::span<const uint32_t> ids() const { return {ids_.data, ids_.size}; }
  std::vector<base::TokenId> tokens() const {
    std::vector<base::TokenId> tokens;
    tokens.reserve(ids_.size);
    for (const uint32_t id : ids()) tokens.push_back(base::TokenId{id});
    return tokens;
  }

 private:
  plumb_ids ids_ = {nullptr, 0, 0};
};

// The status of a call that failed with `code`; `field` names the input at fault, if it is that.
inline base::Status RustStatus(int32_t code, const RustBuffer& error, std::string_view field) {
  std::string message(error.text());
  if (code == PLUMB_INVALID) return base::InvalidArgument(std::string(field), std::move(message));
  if (code == PLUMB_UNSUPPORTED) return base::Unsupported(std::move(message));
  return base::Internal(std::move(message));
}

}  // namespace plumb::text
