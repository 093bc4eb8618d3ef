// cli/arithmetic.cc
// See cli/arithmetic.h: words to options.
#include "cli/arithmetic.h"

#include <fmt/format.h>

#include <charconv>

#include "cli/format.h"
#include "cli/report.h"
#include "model/families/deepseek_v41_config.h"

namespace plumb::cli {
namespace {

using base::InvalidArgument;

base::Status ReadNumerics(const std::string& text, model::Roundings& roundings) {
  if (text.empty() || text == "kvq") {
    roundings = model::Roundings::kKvq;
  } else if (text == "f32") {
    roundings = model::Roundings::kF32;
  } else if (text == "full") {
    roundings = model::Roundings::kFull;
  } else {
    return InvalidArgument("--numerics", fmt::format("--numerics: '{}' is none of f32, kvq, full",
                                                     Printable(text, 60)));
  }
  return base::OkStatus();
}

base::Status ReadReplay(const std::string& text, std::optional<uint32_t>& rows) {
  if (text.empty()) return base::OkStatus();
  if (text == "off") {
    rows = 0;
    return base::OkStatus();
  }
  uint32_t parsed = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, parsed);
  if (result.ec != std::errc() || result.ptr != end || parsed == 0) {
    return InvalidArgument(
        "--replay", fmt::format("--replay: '{}' is neither off nor a number of rows from 1 to {}",
                                Printable(text, 60), UINT32_MAX));
  }
  rows = parsed;
  return base::OkStatus();
}

base::Status OnlyDeepseek(const char* flag) {
  return InvalidArgument(
      flag, fmt::format("{}: only DeepSeek-V4.1 has it; leave it out for this model", flag));
}

}  // namespace

base::Result<Arithmetic> ArithmeticOf(const ArithmeticFlags& flags,
                                      const model::Checkpoint& checkpoint) {
  Arithmetic arithmetic;
  RETURN_IF_ERROR(ReadNumerics(flags.numerics, arithmetic.roundings));
  RETURN_IF_ERROR(ReadReplay(flags.replay, arithmetic.replay_rows));
  const bool q8 = flags.kv_format == "q8";
  if (q8) arithmetic.kv_format = tensor::KvFormat::kQ8;
  if (!model::IsDeepseekV41(checkpoint)) {
    if (!flags.numerics.empty()) return OnlyDeepseek("--numerics");
    if (!flags.replay.empty()) return OnlyDeepseek("--replay");
    return arithmetic;
  }
  if (!q8) return arithmetic;
  return InvalidArgument("--kv-format",
                         "--kv-format: DeepSeek-V4.1 stores keys and values in formats of its own; "
                         "leave it out (--numerics says which roundings they have)");
}

base::Status NamingReplay(const base::Status& status) {
  return status.field() == "replay_rows" ? NamingFlag(status, "--replay") : status;
}

}  // namespace plumb::cli
