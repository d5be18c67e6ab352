#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/tandem.h"

// Programs of the previous minor version still build, with a warning for each old name.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace tandem {
namespace {

TEST(DeprecatedNames, PeakAndPlacementAreTheirSuccessors) {
  auto square = function([](Tensor x) { return x * x; });
  const Tensor x{1.0f, 2.0f};
  const auto concrete = square.concrete(x);
  const auto before = config::predicted_peak(concrete, {x});
  const auto now = config::predict_peak_memory(concrete, {x});
  ASSERT_EQ(before.size(), now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    EXPECT_EQ(before[i].device, now[i].device);
    EXPECT_EQ(before[i].bytes, now[i].bytes);
  }
  config::place_again(concrete);
  EXPECT_EQ(square(x).to_vector<float>(), (std::vector<float>{1, 4}));
}

TEST(DeprecatedNames, PicturesAndLimitsAreTheirSuccessors) {
  const Tensor images = fill({2, 4, 4}, Tensor(0.5f));
  const Tensor labels{0, 1};
  EXPECT_EQ(data::draw_digits(images, labels, labels, 2).to_vector<std::uint8_t>(),
            data::render_digits(images, labels, labels, 2).to_vector<std::uint8_t>());
  const MachineLimits& limits = machine_limits();
  EXPECT_GE(limits.processors, 1);
}

}  // namespace
}  // namespace tandem
