// tensor/panel_read.h
// One weight at a time out of a packed panel, straight from the layout that packed_matrix.h
// documents: what the scalar judge multiplies, and how a single row is read back. Slow; kernels
// have their own ways.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/packed_matrix.h"

namespace plumb::tensor {

// A group of a panel of a quantised type, and the header of its block.
struct PanelGroup {
  const std::byte* header;
  const std::byte* bytes;
};
PanelGroup PanelGroupAt(DType dtype, const std::byte* panel, uint32_t index);

// Of lane `lane`: the stored q of input `i` of the group, the scale of half `half`, the offset.
int32_t PanelQuant(DType dtype, PanelGroup group, uint32_t lane, uint32_t i);
float PanelScale(DType dtype, PanelGroup group, uint32_t half, uint32_t lane);
float PanelOffset(DType dtype, PanelGroup group, uint32_t lane);

// Weight `i` of lane `lane` of a panel of F32 or F16.
float PanelFloat(DType dtype, const std::byte* panel, uint32_t lane, uint32_t i);

}  // namespace plumb::tensor
