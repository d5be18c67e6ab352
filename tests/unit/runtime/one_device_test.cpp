// A machine with a CPU alone.
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

TEST(OneDevice, IsNotTakenForAnotherWithoutSoftPlacement) {
  Runtime runtime({.devices = {.soft_placement = false}});
  RuntimeScope scope(runtime);
  const Tensor x{1.0f, 2.0f};
  const auto f = function([](Tensor a) { return a + a; });
  const auto inside = function([](Tensor a) {
    DeviceScope gpu("/GPU:5");
    return a + a;
  });
  {
    DeviceScope gpu("/GPU:5");
    EXPECT_THROW(x + x, InvalidArgumentError);
    EXPECT_THROW(f(x), InvalidArgumentError);
  }
  EXPECT_THROW(inside(x), InvalidArgumentError);
  DeviceScope cpu("/CPU:0");
  EXPECT_EQ((x + x).to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(f(x).to_vector<float>(), (std::vector<float>{2, 4}));
  runtime.set_soft_placement(true);
  EXPECT_EQ(inside(x).to_vector<float>(), (std::vector<float>{2, 4}));
}

}  // namespace
}  // namespace tandem
