// base/unit_vector.cc
// See unit_vector.h.
#include "base/unit_vector.h"

#include <cmath>

namespace plumb::base {

bool AppendUnitVector(std::span<const double> values, std::vector<float>& out) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  if (!(squares > 0 && std::isfinite(squares))) return false;
  const double length = std::sqrt(squares);
  for (const double value : values) out.push_back(static_cast<float>(value / length));
  return true;
}

}  // namespace plumb::base
