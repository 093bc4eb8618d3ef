// tensor/cpu/all-inl.h
// Every algorithm of a target, in the order to read them. Included inside a target's namespace and
// compile region after its primitives (Floats, Ints, Load, Fma, Dot, ...); it is no header of its
// own and has no include guard, since each target compiles it once.

#include "tensor/cpu/attention-inl.h"
#include "tensor/cpu/block-inl.h"
#include "tensor/cpu/cache_rows-inl.h"
#include "tensor/cpu/gathered-inl.h"
#include "tensor/cpu/index_scores-inl.h"
#include "tensor/cpu/panel-inl.h"
#include "tensor/cpu/product-inl.h"
#include "tensor/cpu/rows-inl.h"

constexpr KernelTable MakeTable(std::string_view name) {
  return {.name = name,
          .product = Multiply,
          .multiply_blocks = MultiplyBlocks,
          .quantize = Quantize,
          .attention = Attention,
          .fold = FoldPages,
          .store = StoreKeyValue,
          .rms_norm = RmsNormRow,
          .swiglu = SwiGluRow,
          .geglu = GeGluRow,
          .add = AddRow,
          .add_scaled = AddScaledRow,
          .soft_cap = SoftCapRow,
          .rotate = RotateHeads,
          .log_sum_exp = LogSumExpRow,
          .softmax = SoftmaxRow,
          .cache_rows = {.encode = EncodeRow,
                         .decode = DecodeRow,
                         .round = RoundRow,
                         .round_bf16 = RoundToBf16,
                         .attend = AttendGathered,
                         .index_scores = IndexScores}};
}
