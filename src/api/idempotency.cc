// api/idempotency.cc
// See idempotency.h.
#include "api/idempotency.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"

namespace plumb::api {

using base::Hash256;
using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr std::string_view kHeader = "Idempotency-Key";
constexpr uint32_t kRetryAfterMs = 1000;
// Set aside at once, so that a stream of small pieces takes the lock seldom.
constexpr uint64_t kGrantBytes = 16u << 10;

bool IsVisible(char c) { return c > 0x20 && c < 0x7f; }

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

Status Reused() {
  return InvalidArgument(std::string(kHeader),
                         "this Idempotency-Key has been used for another request; a new request "
                         "takes a new key")
      .WithReason("idempotency_key_reused");
}

Status InUse() {
  return Status(base::Code::kUnavailable,
                "the first request with this Idempotency-Key is still being answered; ask again "
                "when it is")
      .WithField(std::string(kHeader))
      .WithReason("idempotency_key_in_use")
      .WithRetryAfterMs(kRetryAfterMs);
}

}  // namespace

Result<std::optional<std::string>> IdempotencyKeyOf(const net::HttpHeaders& headers) {
  const auto key = headers.Get(kHeader);
  if (!key) return std::optional<std::string>();
  if (key->empty() || key->size() > kIdempotencyKeyBytesMax ||
      !std::ranges::all_of(*key, IsVisible))
    return InvalidArgument(std::string(kHeader),
                           fmt::format("an Idempotency-Key has 1 to {} visible ASCII characters",
                                       kIdempotencyKeyBytesMax));
  return std::optional<std::string>(*key);
}

Hash256 IdempotencyId(const Hash256& isolation, std::string_view key) {
  return base::Blake3({Bytes("plumb.idempotency.1"), isolation.view(), Bytes(key)});
}

uint64_t SeedOf(const Hash256& id) {
  return base::Blake3({Bytes("plumb.idempotency.seed.1"), id.view()}).prefix();
}

Hash256 HashOfQuestion(std::string_view route, std::string_view body) {
  const uint64_t route_bytes = route.size();
  return base::Blake3({std::as_bytes(std::span(&route_bytes, 1)), Bytes(route), Bytes(body)});
}

AnswerCopy::~AnswerCopy() {
  if (!kept_) store_.Release(*this);
}

void AnswerCopy::Append(std::string_view bytes) {
  CHECK(!kept_) << "the answer was whole";
  if (too_large_) return;
  const uint64_t wanted = body_.size() + bytes.size();
  if (wanted > granted_) {
    const uint64_t more = std::max(wanted - granted_, kGrantBytes);
    too_large_ = wanted > store_.limits_.answer_bytes_max || !store_.Grant(more);
    if (too_large_) {
      body_ = {};
      return;
    }
    granted_ += more;
  }
  body_ += bytes;
}

void AnswerCopy::Keep(std::string_view content_type) {
  CHECK(!kept_) << "the answer was whole";
  if (too_large_) return;  // Release follows
  kept_ = true;
  store_.Keep(*this, content_type);
}

IdempotencyStore::~IdempotencyStore() {
  const base::MutexLock lock(mutex_);
  CHECK(entries_.size() == by_age_.size()) << "an answer is still being written";
}

Result<IdempotencyStore::Claim> IdempotencyStore::Ask(const Hash256& id, const Hash256& question) {
  const base::MutexLock lock(mutex_);
  DropOld();
  Claim claim;
  const auto found = entries_.find(id);
  if (found != entries_.end()) {
    const Entry& entry = found->second;
    if (entry.question != question) return Reused();
    if (!entry.kept) return InUse();
    claim.answer = {
        .status = 200,
        .headers = {{"Content-Type", entry.content_type}, {"Idempotent-Replayed", "true"}},
        .body = entry.body};
    return claim;
  }
  if (entries_.size() >= limits_.keys_max) {
    if (by_age_.empty()) {
      return Status(base::Code::kOverloaded,
                    "too many requests with an Idempotency-Key are running")
          .WithRetryAfterMs(kRetryAfterMs);
    }
    DropOldest();
  }
  entries_.emplace(id, Entry{.question = question});
  claim.copy = std::make_unique<AnswerCopy>(*this, id);
  return claim;
}

bool IdempotencyStore::Grant(uint64_t bytes) {
  const base::MutexLock lock(mutex_);
  while (bytes_ + bytes > limits_.bytes_max) {
    if (by_age_.empty()) return false;
    DropOldest();
  }
  bytes_ += bytes;
  return true;
}

void IdempotencyStore::Keep(AnswerCopy& copy, std::string_view content_type) {
  copy.body_.shrink_to_fit();
  const base::MutexLock lock(mutex_);
  bytes_ -= copy.granted_ - copy.body_.size();
  Entry& entry = entries_.at(copy.id_);
  entry.kept = true;
  entry.content_type = content_type;
  entry.body = std::move(copy.body_);
  entry.kept_at = clock_.Now();
  by_age_.push_back(copy.id_);
}

void IdempotencyStore::Release(AnswerCopy& copy) {
  const base::MutexLock lock(mutex_);
  bytes_ -= copy.granted_;
  entries_.erase(copy.id_);
}

void IdempotencyStore::DropOldest() {
  const auto oldest = entries_.find(by_age_.front());
  bytes_ -= oldest->second.body.size();
  entries_.erase(oldest);
  by_age_.pop_front();
}

void IdempotencyStore::DropOld() {
  const base::Instant now = clock_.Now();
  while (!by_age_.empty() && now - entries_.at(by_age_.front()).kept_at > limits_.age_max)
    DropOldest();
}

size_t IdempotencyStore::keys() const {
  const base::MutexLock lock(mutex_);
  return entries_.size();
}

uint64_t IdempotencyStore::bytes() const {
  const base::MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace plumb::api
