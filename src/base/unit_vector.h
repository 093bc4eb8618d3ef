// base/unit_vector.h
// A vector's direction: what embeddings are given as, so that a product of two is a cosine.
#pragma once

#include <span>
#include <vector>

namespace plumb::base {

// Appends `values`, each divided by their length in f64 and rounded once, to `out`. False: they
// have no direction, since all are 0 or one is not finite; `out` is as it was.
[[nodiscard]] bool AppendUnitVector(std::span<const double> values, std::vector<float>& out);

}  // namespace plumb::base
