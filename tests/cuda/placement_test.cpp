// Where the training steps of large models run on a machine with a GPU: nothing that computes with
// floats is left on the CPU.

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/runtime/runtime.h"
#include <tandem/tandem.h>

namespace tandem::keras {
namespace {

// The ops of a training step that are placed on the CPU, but for what is given to it.
std::set<std::string> ops_on_cpu(const Model& model, const Tensor& x, const Tensor& y) {
  Optimizer optimizer = optimizers::SGD({.learning_rate = 0.1, .momentum = 0.9});
  optimizer.build(model.trainable_weights());
  const losses::SparseCategoricalCrossentropy loss;
  const auto step = function([&](Tensor inputs, Tensor labels) {
    GradientTape tape;
    const Tensor value = loss(labels, model(inputs, {.training = true}));
    optimizer.apply(tape.gradient(value, model.trainable_weights()), model.trainable_weights());
    return value;
  });
  const Explanation explained = explain(step, x, y);
  std::set<std::string> found;
  int on_gpu = 0;
  for (const Explanation::Op& op : explained.ops) {
    const std::string& device = explained.devices[static_cast<std::size_t>(op.device)].short_name;
    on_gpu += device == "GPU:0";
    if (device == "CPU:0" && !op.is_constant && op.op != "_Arg") found.insert(op.op);
  }
  EXPECT_GT(on_gpu, 50);
  return found;
}

// What works on shapes and seeds, in integers.
const std::set<std::string> kOfIntegers = {"Shape", "Reshape", "NoOp",
                                           "StatelessRandomGetKeyCounter"};

void expect_on_gpu(const std::set<std::string>& on_cpu) {
  for (const std::string& op : on_cpu) EXPECT_TRUE(kOfIntegers.contains(op)) << op;
}

// In float, and with mixed precision.
class PlacementOnGpu : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { mixed_precision::set_global_policy(GetParam()); }
  void TearDown() override { mixed_precision::set_global_policy("float32"); }
};

TEST_P(PlacementOnGpu, ATrainingStepOfResNet50) {
  const Model model = applications::ResNet50({.input_shape = {32, 32, 3}, .classes = 10});
  expect_on_gpu(ops_on_cpu(model, ones({2, 32, 32, 3}), Tensor{1, 2}));
}

TEST_P(PlacementOnGpu, ATrainingStepOfATransformer) {
  const KerasTensor tokens = Input({8}, {.dtype = int32});
  KerasTensor x = Embedding(16, 8)(tokens);
  for (int layer = 0; layer < 2; ++layer) {
    const KerasTensor attended = MultiHeadAttention(2, 4)(x, x, {.use_causal_mask = true});
    x = LayerNormalization()(Add()(std::vector<KerasTensor>{x, Dropout(0.1)(attended)}));
    const KerasTensor inner = Dense(16, {.activation = "gelu"})(x);
    x = LayerNormalization()(Add()(std::vector<KerasTensor>{x, Dense(8)(inner)}));
  }
  const Model model(tokens, Dense(16, {.activation = "softmax"})(x));
  const Tensor words = zeros({2, 8}, int32);
  expect_on_gpu(ops_on_cpu(model, words, words));
}

// Ops of TensorFlow's, each with a kernel that is for GPUs.
TEST(KernelsForGpus, AreThereForMostOpsOfModels) {
  const Runtime& runtime = Runtime::current();
  int count = 0;
  for (const OpDef* op : runtime.ops().all()) {
    const auto kernels = runtime.kernels().all(op->name);
    count += op->name[0] != '_' &&
             std::any_of(kernels.begin(), kernels.end(), [](const KernelDecl* kernel) {
               return std::string_view(kernel->kernel_class) == "cuda";
             });
  }
  EXPECT_GE(count, 350);
}

INSTANTIATE_TEST_SUITE_P(Policies, PlacementOnGpu,
                         testing::Values("float32", "mixed_float16", "mixed_bfloat16"),
                         [](const auto& policy) { return std::string(policy.param); });

}  // namespace
}  // namespace tandem::keras
