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

Status TooMany(base::Code code) {
  return Status(code, "too many requests with an Idempotency-Key are running; ask again later")
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
    too_large_ = wanted > store_.limits_.answer_bytes_max || !store_.Grant(request_.caller, more);
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

Result<IdempotencyStore::Claim> IdempotencyStore::Ask(const IdempotentRequest& request) {
  const base::MutexLock lock(mutex_);
  DropOld();
  Claim claim;
  const auto found = entries_.find(request.id);
  if (found != entries_.end()) {
    const Entry& entry = found->second;
    if (entry.question != request.question) return Reused();
    if (!entry.kept) return InUse();
    claim.answer = {
        .status = 200,
        .headers = {{"Content-Type", entry.content_type}, {"Idempotent-Replayed", "true"}},
        .body = entry.body};
    return claim;
  }
  RETURN_IF_ERROR(MakeRoom(request.caller));
  entries_.emplace(
      request.id,
      Entry{.caller = request.caller, .question = request.question, .number = request.number});
  ++shares_[request.caller].keys;
  claim.copy = std::make_unique<AnswerCopy>(*this, request);
  return claim;
}

// Of one more key.
Status IdempotencyStore::MakeRoom(const Hash256& caller) {
  const auto share = shares_.find(caller);
  if (share != shares_.end() && share->second.keys >= limits_.caller_keys_max) {
    if (share->second.by_age.empty()) return TooMany(base::Code::kQuotaExceeded);
    Drop(share->second.by_age.front());
  }
  if (entries_.size() >= limits_.keys_max) {
    if (by_age_.empty()) return TooMany(base::Code::kOverloaded);
    Drop(by_age_.front());
  }
  return base::OkStatus();
}

// What is asked for is set aside before anything is dropped, so that the caller's share outlives
// the last of its answers that is kept.
bool IdempotencyStore::Grant(const Hash256& caller, uint64_t bytes) {
  const base::MutexLock lock(mutex_);
  Share& share = shares_.at(caller);  // it has an entry: the one that is being written
  share.bytes += bytes;
  bytes_ += bytes;
  while (share.bytes > limits_.caller_bytes_max && !share.by_age.empty())
    Drop(share.by_age.front());
  bool fits = share.bytes <= limits_.caller_bytes_max;
  while (fits && bytes_ > limits_.bytes_max && !by_age_.empty()) Drop(by_age_.front());
  fits = fits && bytes_ <= limits_.bytes_max;
  if (!fits) GiveBack(caller, bytes);
  return fits;
}

void IdempotencyStore::GiveBack(const Hash256& caller, uint64_t bytes) {
  shares_.at(caller).bytes -= bytes;
  bytes_ -= bytes;
}

void IdempotencyStore::Keep(AnswerCopy& copy, std::string_view content_type) {
  copy.body_.shrink_to_fit();
  const base::MutexLock lock(mutex_);
  const Hash256& caller = copy.request_.caller;
  Entry& entry = entries_.at(copy.request_.id);
  if (entry.forgotten) {
    GiveBack(caller, copy.granted_);
    return Remove(copy.request_.id);
  }
  GiveBack(caller, copy.granted_ - copy.body_.size());
  entry.kept = true;
  entry.content_type = content_type;
  entry.body = std::move(copy.body_);
  entry.kept_at = clock_.Now();
  entry.age = by_age_.insert(by_age_.end(), copy.request_.id);
  Ages& of_caller = shares_.at(caller).by_age;
  entry.caller_age = of_caller.insert(of_caller.end(), copy.request_.id);
}

void IdempotencyStore::Forget(const IdempotentCopy& copy) {
  const base::MutexLock lock(mutex_);
  const auto found = entries_.find(copy.id);
  if (found == entries_.end() || found->second.number != copy.number) return;
  if (found->second.kept) return Drop(copy.id);
  found->second.forgotten = true;
}

void IdempotencyStore::Release(AnswerCopy& copy) {
  const base::MutexLock lock(mutex_);
  GiveBack(copy.request_.caller, copy.granted_);
  Remove(copy.request_.id);
}

void IdempotencyStore::Drop(Hash256 id) {
  const Entry& entry = entries_.at(id);
  CHECK(entry.kept) << "an answer that is being written";
  GiveBack(entry.caller, entry.body.size());
  by_age_.erase(entry.age);
  shares_.at(entry.caller).by_age.erase(entry.caller_age);
  Remove(id);
}

void IdempotencyStore::Remove(const Hash256& id) {
  const auto entry = entries_.find(id);
  const auto share = shares_.find(entry->second.caller);
  entries_.erase(entry);
  if (--share->second.keys == 0) shares_.erase(share);
}

void IdempotencyStore::DropOld() {
  const base::Instant now = clock_.Now();
  while (!by_age_.empty() && now - entries_.at(by_age_.front()).kept_at > limits_.age_max)
    Drop(by_age_.front());
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
