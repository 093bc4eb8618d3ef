// cli/arithmetic.h
// What --numerics, --replay and --kv-format choose of a model's arithmetic, for every command that
// loads one. Only some families have the first two, others only the last; a flag that would do
// nothing is refused by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/checkpoint.h"
#include "model/load.h"

namespace plumb::cli {

// Empty: not given, so the model's usual.
struct ArithmeticFlags {
  std::string numerics;   // f32, kvq, full
  std::string replay;     // rows, or off
  std::string kv_format;  // f16 (as if not given), q8
};

// For model::LoadOptions.
struct Arithmetic {
  model::Roundings roundings = model::Roundings::kKvq;
  std::optional<uint32_t> replay_rows;  // none: the model's own default
  tensor::KvFormat kv_format = tensor::KvFormat::kF16;
};

// kInvalidArgument with the flag as field: no such value, or none that this model's family has.
base::Result<Arithmetic> ArithmeticOf(const ArithmeticFlags& flags,
                                      const model::Checkpoint& checkpoint);

// LoadModel's error about rows of replay as one about --replay; any other as it is.
base::Status NamingReplay(const base::Status& status);

}  // namespace plumb::cli
