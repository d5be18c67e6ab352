// The order of BlockLSTMV2's gates in its gradient. TensorFlow's own gradient of the op takes the
// gates in the order of BlockLSTM, so there is nothing stored to compare with.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

constexpr std::int64_t kSteps = 3, kBatch = 2, kInputs = 3, kCells = 2;

Tensor some(std::vector<std::int64_t> shape, int seed) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>((i * 7 + seed * 5) % 13) / 10 - 0.6f);
  return Tensor::from(values, Shape(shape));
}

// Input, cell, forget, output <-> input, forget, cell, output: the same exchange both ways.
Tensor exchanged(const Tensor& gates) {
  std::vector<Tensor> parts = split(gates, 4, gates.rank() - 1);
  std::swap(parts[1], parts[2]);
  return concat(parts, gates.rank() - 1);
}

// The gradients of the outputs' weighed sum towards all floating inputs.
std::vector<Tensor> gradients(const char* op, const AttrMap& attrs,
                              const std::vector<Tensor>& inputs) {
  GradientTape tape;
  for (std::size_t i = 1; i < inputs.size(); ++i) tape.watch(inputs[i]);
  const std::vector<Tensor> state = raw_op(op, inputs, attrs);
  const Tensor loss = reduce_sum(state[1] * some({kSteps, kBatch, kCells}, 8)) +
                      reduce_sum(state[6] * some({kSteps, kBatch, kCells}, 9));
  return tape.gradient(loss, std::vector<Tensor>(inputs.begin() + 1, inputs.end()));
}

TEST(BlockLSTMV2, HasTheGradientOfBlockLSTMWithItsGatesExchanged) {
  const std::vector<Tensor> first{Tensor(kSteps),
                                  some({kSteps, kBatch, kInputs}, 0),
                                  some({kBatch, kCells}, 1),
                                  some({kBatch, kCells}, 2),
                                  some({kInputs + kCells, 4 * kCells}, 3),
                                  some({kCells}, 4),
                                  some({kCells}, 5),
                                  some({kCells}, 6),
                                  some({4 * kCells}, 7)};
  std::vector<Tensor> second = first;
  second[4] = exchanged(first[4]);
  second[8] = exchanged(first[8]);
  for (const bool peephole : {false, true}) {
    const std::vector<Tensor> want =
        gradients("BlockLSTM",
                  {{"use_peephole", peephole}, {"cell_clip", -1.0f}, {"forget_bias", 0.0f}}, first);
    const std::vector<Tensor> got =
        gradients("BlockLSTMV2", {{"use_peephole", peephole}, {"cell_clip", -1.0f}}, second);
    ASSERT_EQ(got.size(), 8u);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const Tensor mine = i == 3 || i == 7 ? exchanged(got[i]) : got[i];
      EXPECT_LT(reduce_max(abs(mine - want[i])).item<float>(), 1e-5f) << i << " " << peephole;
    }
    EXPECT_GT(reduce_max(abs(want[3])).item<float>(), 0.01f);
    EXPECT_EQ(reduce_max(abs(want[4])).item<float>() > 0, peephole);
  }
}

}  // namespace
}  // namespace tandem
