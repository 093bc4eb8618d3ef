// text/rust.h
// How this module speaks to the Rust library (rust/include/plumb_rust.h): borrowed views in, owned
// buffers and error codes out. Internal to text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
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

// The status of a call that failed with `code`; `field` names the input at fault, if it is that.
inline base::Status RustStatus(int32_t code, const RustBuffer& error, std::string_view field) {
  std::string message(error.text());
  if (code == PLUMB_INVALID) return base::InvalidArgument(std::string(field), std::move(message));
  if (code == PLUMB_UNSUPPORTED) return base::Unsupported(std::move(message));
  return base::Internal(std::move(message));
}

}  // namespace plumb::text
