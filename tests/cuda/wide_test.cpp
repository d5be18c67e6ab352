// Values of more than 2^31 elements on a device GPU:0 whose kernels run on the host. The stand-in's
// memory takes room of the machine's only where something is written.

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/device/memory_space.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"
#include <tandem/tandem.h>

namespace tandem {
namespace {

using Bytes = std::vector<std::int8_t>;
using Indices = std::vector<std::int64_t>;
constexpr std::int64_t k2To31 = std::int64_t{1} << 31;
constexpr std::int64_t kSize = k2To31 + 1000;

// A variable of zeros, with 1, 2, 3 and 4 at the places below.
class WideValues : public testing::Test {
 protected:
  void SetUp() override {
    config::set_soft_device_placement(false);
    v_ = Variable(zeros_on_gpu());
    scatter_update(v_, indices(), Tensor::from(Bytes{1, 2, 3, 4}, {4}));
  }

  // Memory that was never written, which is zero here.
  static Tensor zeros_on_gpu() {
    for (const std::shared_ptr<Device>& device : Runtime::current().devices()) {
      if (!device->memory_space()) continue;
      Tensor made(new TensorImpl(allocate_on(*device, DType::kInt8, Shape{kSize})));
      made.impl()->device = device;
      return made;
    }
    throw NotFoundError("there is no GPU");
  }

  static Tensor indices() {
    return Tensor::from(Indices{7, k2To31 - 1, k2To31 + 1, kSize - 1}, {4});
  }
  static Bytes bytes(const Tensor& t) { return t.to_vector<std::int8_t>(); }

  const DeviceScope on_{"/GPU:0"};
  Variable v_;
};

TEST_F(WideValues, AreGatheredAndScattered) {
  const Bytes written{1, 2, 3, 4};
  EXPECT_EQ(bytes(gather(v_, indices())), written);
  EXPECT_EQ(bytes(gather(v_.read_value(), indices())), written);
  EXPECT_EQ(bytes(gather_nd(v_.read_value(), reshape(indices(), {4, 1}))), written);
  scatter_add(v_, indices(), Tensor::from(Bytes{10, 20, 30, 40}, {4}));
  EXPECT_EQ(bytes(gather(v_, indices())), (Bytes{11, 22, 33, 44}));
}

TEST_F(WideValues, AreSliced) {
  const Tensor value = v_.read_value();
  EXPECT_EQ(bytes(value[Slice(k2To31 - 2, k2To31 + 3)]), (Bytes{0, 2, 0, 3, 0}));
  EXPECT_EQ(bytes(value[Slice(-3, kSize)]), (Bytes{0, 0, 4}));
  EXPECT_EQ(bytes(slice(value, {k2To31 - 1}, {3})), (Bytes{2, 0, 3}));
  // Backwards, with a stride.
  EXPECT_EQ(bytes(value[Slice(kSize - 1, k2To31 - 2, -998)]), (Bytes{4, 3}));
}

// Rows and columns of matrices beyond 2^31 elements.
TEST_F(WideValues, OfMatrices) {
  const Tensor rows = reshape(v_.read_value(), {kSize / 8, 8});
  const std::int64_t row = k2To31 / 8;
  EXPECT_EQ(bytes(gather(rows, Tensor::from(Indices{row}, {1}))), (Bytes{0, 3, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(bytes(rows[{Slice(row - 1, row + 1), Slice(6, 8)}]), (Bytes{0, 2, 0, 0}));
  EXPECT_EQ(bytes(rows[{row, 1}]), Bytes{3});
  const Tensor columns = gather(reshape(v_.read_value(), {8, kSize / 8}),
                                Tensor::from(Indices{kSize / 8 - 1}, {1}), 1);
  EXPECT_EQ(bytes(columns), (Bytes{0, 0, 0, 0, 0, 0, 0, 4}));
}

}  // namespace
}  // namespace tandem
