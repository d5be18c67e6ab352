#include <array>

#include "tandem/core/error.h"
#include "tandem/keras/internal/application_blocks.h"

// Huang et al. 2016, "Densely Connected Convolutional Networks".

namespace tandem::keras::applications {
namespace {

using namespace internal;

constexpr NormBlock kNorm{.epsilon = 1.001e-5};
constexpr std::int64_t kGrowth = 32;

KerasTensor norm_relu(const KerasTensor& x, const std::string& name) {
  return activate(batch_norm(x, name + "_bn", kNorm), "relu", name + "_relu");
}

Model densenet_model(const char* who, const std::array<int, 4>& depths, const ApplicationOptions& o,
                     const std::string& name) {
  const KerasTensor input = application_input(who, o, 224);
  KerasTensor x = zero_pad(input, 3);
  x = conv(x, 64, 7, "conv1_conv", {.strides = 2, .padding = "valid"});
  x = max_pool(zero_pad(norm_relu(x, "conv1"), 1), 3, 2, "pool1");
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    for (int i = 1; i <= depths[stage]; ++i) {
      const std::string block = cat("conv", stage + 2, "_block", i);
      KerasTensor y = norm_relu(x, block + "_0");
      y = norm_relu(conv(y, 4 * kGrowth, 1, block + "_1_conv", {.padding = "valid"}), block + "_1");
      y = conv(y, kGrowth, 3, block + "_2_conv");
      x = concatenate({x, y}, block + "_concat");
    }
    if (stage + 1 == depths.size()) break;
    const std::string pool = cat("pool", stage + 2);
    x = norm_relu(x, pool);
    x = conv(x, channels(x) / 2, 1, pool + "_conv", {.padding = "valid"});
    x = average_pool(x, 2, 2, pool + "_pool");
  }
  x = activate(batch_norm(x, "bn", kNorm), "relu", "relu");
  return finish_application(input, classifier(x, o, "avg_pool", "max_pool"), o, name);
}

}  // namespace

Model DenseNet121(const ApplicationOptions& o) {
  return densenet_model("DenseNet121", {6, 12, 24, 16}, o, "densenet121");
}
Model DenseNet169(const ApplicationOptions& o) {
  return densenet_model("DenseNet169", {6, 12, 32, 32}, o, "densenet169");
}
Model DenseNet201(const ApplicationOptions& o) {
  return densenet_model("DenseNet201", {6, 12, 48, 32}, o, "densenet201");
}

}  // namespace tandem::keras::applications
