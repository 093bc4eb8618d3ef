// model/families/numpy_integers_test.cc: what numpy.random.default_rng(seed).integers(0, bound,
// size=n) gave, NumPy 2.
#include "model/families/numpy_integers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace plumb::model {
namespace {

using testing::ElementsAre;

TEST(NumpyIntegers, EqualWhatNumpyDraws) {
  EXPECT_THAT(NumpyIntegers(0, (uint64_t{1} << 40) + 3, 4),
              ElementsAre(700346781659, 296633628803, 45050865998, 18172327443));
  EXPECT_THAT(NumpyIntegers(1, (uint64_t{1} << 62) + 1, 3),
              ElementsAre(2360360630558964032, 4383240139369130522, 664818870401041971));
  // A seed of two words.
  EXPECT_THAT(NumpyIntegers((uint64_t{1} << 40) + 17, uint64_t{1} << 33, 3),
              ElementsAre(2900388585, 2268822369, 4515775183));
  // Almost every second draw is rejected.
  EXPECT_THAT(NumpyIntegers(7, (uint64_t{1} << 63) + 1, 5),
              ElementsAre(7154437704795913393, 2768545318656780450, 8057108420966028186,
                          7351667880583433391, 4315938159125732496));
}

}  // namespace
}  // namespace plumb::model
