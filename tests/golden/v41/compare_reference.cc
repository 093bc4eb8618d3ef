// tests/golden/v41/compare_reference.cc
// Holds a checkpoint of any shape against arrays of the reference, by hand:
//   compare_reference CHECKPOINT ARRAYS.safetensors f32|kvq [REPLAY_ROWS]
// Compares logits, and every stage and discrete choice that the arrays name; exits 1 where they
// differ. Tools that make the arrays: real_shape.py.
#include <fmt/format.h>

#include <string>

#include "golden_file.h"
#include "golden_model.h"
#include "golden_observer.h"

namespace plumb::model {
namespace {

int Run(const std::string& path, const std::string& arrays, const std::string& mode,
        uint32_t replay_rows) {
  const GoldenFile golden(arrays);
  GoldenObserver observer(golden, false);
  GoldenModel model(path, mode == "f32" ? Roundings::kF32 : Roundings::kKvq, &observer,
                    replay_rows);
  const auto ids = golden.Integers("ids");
  const auto count = static_cast<uint32_t>(ids.size());
  model.Begin(replay_rows == 0 ? 0 : count - std::min(count, replay_rows));
  const auto logits = model.Run(ids);
  const double bound = mode == "f32" ? 1e-4 : 1e-3;
  const double error = RelativeError(logits, golden.Floats("logits"));
  bool good = error < bound && observer.differing() == 0;
  fmt::print("logits: {:.1e}\n", error);
  for (const auto& [stage, largest] : observer.errors()) {
    fmt::print("{}: {:.1e}\n", stage, largest);
    good = good && largest < bound;
  }
  fmt::print("{} of {} choices differ, in {} entries\n", observer.differing(), observer.choices(),
             observer.differing_entries());
  return good ? 0 : 1;
}

}  // namespace
}  // namespace plumb::model

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "compare_reference CHECKPOINT ARRAYS.safetensors f32|kvq [REPLAY_ROWS]\n");
    return 2;
  }
  return plumb::model::Run(argv[1], argv[2], argv[3],
                           argc > 4 ? static_cast<uint32_t>(std::stoul(argv[4])) : 0);
}
