// base/result.h
// A value or the Status that says why there is none. The names follow std::expected, which g++ 12
// offers only from C++23 on. Also the two macros that pass an error up; there are no others.
#pragma once

#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace plumb::base {

template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by design
    CHECK(!status_.ok()) << "a Result without value needs an error";
  }

  bool ok() const { return value_.has_value(); }
  bool has_value() const { return ok(); }
  explicit operator bool() const { return ok(); }

  // The value; a bug (CHECK) when there is none.
  T& value() & {
    CHECK(ok()) << status_.ToString();
    return *value_;
  }
  const T& value() const& {
    CHECK(ok()) << status_.ToString();
    return *value_;
  }
  T&& value() && {
    CHECK(ok()) << status_.ToString();
    return *std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Ok when there is a value.
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }
  const Status& error() const { return status_; }

  template <typename U>
  T value_or(U&& other) const& {
    return ok() ? *value_ : T(std::forward<U>(other));
  }

 private:
  std::optional<T> value_;
  Status status_;
};

inline Status ToStatus(Status status) { return status; }
template <typename T>
Status ToStatus(Result<T>&& result) {
  return std::move(result).status();
}

}  // namespace plumb::base

#define PLUMB_CONCAT_INNER(a, b) a##b
#define PLUMB_CONCAT(a, b) PLUMB_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expr` (a Status or a Result) is not ok.
#define RETURN_IF_ERROR(expr)                                            \
  do {                                                                   \
    ::plumb::base::Status status_macro_ = ::plumb::base::ToStatus(expr); \
    if (!status_macro_.ok()) return status_macro_;                       \
  } while (0)

// ASSIGN_OR_RETURN(auto x, MakeX()): x holds the value, or the enclosing function returns the
// error.
#define ASSIGN_OR_RETURN(lhs, expr) \
  PLUMB_ASSIGN_OR_RETURN_IMPL(PLUMB_CONCAT(result_macro_, __LINE__), lhs, expr)
#define PLUMB_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                                \
  if (!result.ok()) return std::move(result).status(); \
  lhs = std::move(result).value()
