// base/share.h
// How much one user may have of what several share and that has a maximum: as much as is left free
// when it has it. Alone that is half, with one other as greedy a third; so however many take what
// they can, there is something left for the next one, and who takes little is never kept waiting
// by them. Source: Choudhury, Hahne, "Dynamic queue length thresholds for shared-memory packet
// switches", IEEE/ACM Transactions on Networking 6 (1998), with alpha = 1.
#pragma once

#include <cstdint>

namespace plumb::base {

// In any one unit; with what is asked for.
struct Share {
  uint64_t max = 0;  // of all
  uint64_t all = 0;  // what all have, `own` among it
  uint64_t own = 0;
};

// Whether there is as much at all; not whose it is.
constexpr bool FitsAll(const Share& share) { return share.all <= share.max; }
// Whether there is, and the one that asks leaves as much to others as it has.
constexpr bool FitsShare(const Share& share) {
  return FitsAll(share) && share.own <= share.max - share.all;
}

}  // namespace plumb::base
