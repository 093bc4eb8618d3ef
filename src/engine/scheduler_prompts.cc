// engine/scheduler_prompts.cc
// Which prompts have how many rows of the step. In turns of about equal work, so that time is
// shared and not rows, until the step's time is used up: a quarter of the work goes to the prompt
// of the highest rank, so that long ones go on; the rest to the tenant served least, its shortest
// prompt first, so that short ones are not held up.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/scheduler.h"

namespace plumb::engine {
namespace {

// Work of a turn, in rows of a beginning prompt: about what is computed as one.
constexpr double kTurnRows = 8;
// Of the work, for the prompt of the highest rank.
constexpr double kShareForRank = 0.25;
// As long as nothing is measured: a first step of a large model must not take seconds.
constexpr uint32_t kRowsUnmeasured = 32;

}  // namespace

void Scheduler::CollectPrompts() {
  shares_.clear();
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence* sequence = running_[i];
    if (sequence->decoding()) continue;
    pages_.Adopt(*sequence);
    if (pages_.WaitsForCheckpoint(*sequence, std::span(running_).first(i))) continue;
    shares_.push_back({.sequence = sequence,
                       .page = pages_.PageInWork(*sequence),
                       .served = fair_.Served(*sequence),
                       .rows_max = pages_.RowsMax(*sequence)});
  }
  DropWhoWaitForPages();
}

void Scheduler::DropWhoWaitForPages() {
  const auto by_rank = [](const Share& a, const Share& b) {
    return Outranks(a.sequence, b.sequence);
  };
  // Equal pages side by side, the highest-ranking sequence first: it computes the page.
  std::sort(shares_.begin(), shares_.end(), [&](const Share& a, const Share& b) {
    if (a.page != nullptr && b.page != nullptr && *a.page != *b.page) return *a.page < *b.page;
    if ((a.page == nullptr) != (b.page == nullptr)) return a.page == nullptr;
    return by_rank(a, b);
  });
  const auto end =
      std::unique(shares_.begin(), shares_.end(), [](const Share& kept, const Share& next) {
        return kept.page != nullptr && next.page != nullptr && *kept.page == *next.page;
      });
  shares_.erase(end, shares_.end());
  std::sort(shares_.begin(), shares_.end(), by_rank);
}

void Scheduler::SharePrompts() {
  if (shares_.empty()) return;
  prompt_rows_left_ = std::min(limits_.prefill_rows_max, limits_.rows_max - shape_.rows);
  if (!cost_.measured() && limit_ != kEndless) {
    prompt_rows_left_ = std::min(prompt_rows_left_, kRowsUnmeasured);
  }
  // Each running sequence may need a row with logits; the streams have theirs.
  const uint32_t reserved = shape_.logits_rows + static_cast<uint32_t>(shares_.size());
  CHECK(prompt_rows_left_ > 0 && reserved <= limits_.logits_rows_max);
  logits_left_ = limits_.logits_rows_max - reserved;

  NoteTurn(Grant(shares_.front(), 1, true), true);
  TakeTurns();
  // By rank: the victims of the one are behind it here, or streams that are planned last of all.
  for (const Share& share : shares_) {
    if (share.rows > 0) GrowOrPreempt(*share.sequence, share.rows);
  }
}

void Scheduler::TakeTurns() {
  for (size_t begin = 0, end = 0; begin < shares_.size(); begin = end) {
    const Priority priority = shares_[begin].sequence->priority;
    while (end < shares_.size() && shares_[end].sequence->priority == priority) ++end;
    const std::span<Share> equals = std::span(shares_).subspan(begin, end - begin);
    for (;;) {
      Share* first = nullptr;
      Share* least = nullptr;
      for (Share& share : equals) {
        if (share.done()) continue;
        if (first == nullptr) first = &share;
        if (least == nullptr ||
            std::pair(share.served, share.left()) < std::pair(least->served, least->left())) {
          least = &share;
        }
      }
      if (first == nullptr) break;
      Share* next = rank_credit_ >= 0 ? first : least;
      const double price = 1 + cost_.KeyPrice() * (next->sequence->computed + next->rows);
      const double rows = std::max(kTurnRows / price, 1.0);
      const double work = Grant(*next, static_cast<uint32_t>(rows), false);
      // Others may be cheaper to compute, but it is this one's turn: it comes first next time.
      if (work < 0) return;
      NoteTurn(work, next == first);
    }
  }
}

void Scheduler::NoteTurn(double work, bool first) {
  rank_credit_ += kShareForRank * work - (first ? work : 0);
  // What it had while it was alone is not held against it.
  rank_credit_ = std::clamp(rank_credit_, -kTurnRows, kTurnRows);
}

double Scheduler::Grant(Share& share, uint32_t most, bool always) {
  Sequence& sequence = *share.sequence;
  if (!share.adopted) {
    pages_.AdoptPartial(sequence);
    share.adopted = true;
    share.rows_max = pages_.RowsMax(sequence);
  }
  const uint32_t logits_before = LogitsRows(sequence, share.rows);
  const uint64_t keys_before = KeysOf(sequence.computed, share.rows);
  // Beside the one that is kept for it.
  const auto extra = [](uint32_t logits_rows) { return std::max(logits_rows, 1u) - 1; };
  const uint32_t room = share.rows_max - share.rows;
  for (uint32_t more = std::min({most, room, prompt_rows_left_}); more > 0; more /= 2) {
    const uint32_t rows = share.rows + more;
    const uint32_t logits = LogitsRows(sequence, rows);
    const uint32_t logits_more = extra(logits) - extra(logits_before);
    if (logits_more > logits_left_) {
      share.no_more_logits = more == 1;
      continue;
    }
    const uint64_t keys = KeysOf(sequence.computed, rows) - keys_before;
    const StepShape shape{shape_.rows + more, shape_.logits_rows + logits - logits_before,
                          shape_.keys + keys};
    if (!always && !Fits(shape)) continue;
    shape_ = shape;
    prompt_rows_left_ -= more;
    logits_left_ -= logits_more;
    share.rows = rows;
    const double work = more + cost_.KeyPrice() * static_cast<double>(keys);
    for (Share& other : shares_) {
      const Sequence& of = *other.sequence;
      if (of.priority == sequence.priority && of.tenant == sequence.tenant) other.served += work;
    }
    return work;
  }
  return share.no_more_logits ? 0 : -1;  // the former is no reason for others to stop
}

bool Scheduler::Fits(const StepShape& shape) const {
  return limit_ == kEndless || !cost_.measured() || cost_.Predict(shape) <= limit_;
}

uint32_t Scheduler::LogitsRows(const Sequence& sequence, uint32_t rows) {
  if (sequence.embeds()) return 0;
  const uint32_t end = sequence.computed + rows;
  const uint32_t wanted = end > sequence.logits_from ? end - sequence.logits_from : 0;
  const bool last = rows > 0 && end == sequence.length;
  return std::max(std::min(wanted, rows), last ? 1u : 0u);
}

}  // namespace plumb::engine
