#include <string>

#include "tandem/core/error.h"
#include "tandem/keras/internal/application_blocks.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/operators.h"

// Szegedy et al. 2015, "Rethinking the Inception Architecture for Computer Vision", and 2016,
// "Inception-v4, Inception-ResNet and the Impact of Residual Connections on Learning".

namespace tandem::keras::applications {
namespace {

using namespace internal;

// Convolution, normalization without scale, and relu.
KerasTensor unit(const KerasTensor& x, std::int64_t filters, Size2D size,
                 const std::string& padding = "same", std::int64_t stride = 1) {
  const KerasTensor y = conv(x, filters, size, "", {.strides = stride, .padding = padding});
  return activate(batch_norm(y, "", {.scale = false}), "relu");
}
KerasTensor shrinking_unit(const KerasTensor& x, std::int64_t filters, Size2D size) {
  return unit(x, filters, size, "valid", 2);
}
KerasTensor pooled_unit(const KerasTensor& x, std::int64_t filters) {
  return unit(average_pool(x, 3, 1, "", "same"), filters, 1);
}

KerasTensor stem(const KerasTensor& input) {
  KerasTensor x = shrinking_unit(input, 32, 3);
  x = unit(unit(x, 32, 3, "valid"), 64, 3);
  x = max_pool(x, 3, 2, "");
  x = unit(unit(x, 80, 1, "valid"), 192, 3, "valid");
  return max_pool(x, 3, 2, "");
}

KerasTensor mixed_35(const KerasTensor& x, std::int64_t pooled, const std::string& name) {
  const KerasTensor one = unit(x, 64, 1);
  const KerasTensor five = unit(unit(x, 48, 1), 64, 5);
  const KerasTensor three = unit(unit(unit(x, 64, 1), 96, 3), 96, 3);
  return concatenate({one, five, three, pooled_unit(x, pooled)}, name);
}

KerasTensor mixed_17(const KerasTensor& x, std::int64_t width, const std::string& name) {
  const KerasTensor one = unit(x, 192, 1);
  const KerasTensor seven = unit(unit(unit(x, width, 1), width, {1, 7}), 192, {7, 1});
  KerasTensor twice = unit(unit(x, width, 1), width, {7, 1});
  twice = unit(unit(twice, width, {1, 7}), width, {7, 1});
  twice = unit(twice, 192, {1, 7});
  return concatenate({one, seven, twice, pooled_unit(x, 192)}, name);
}

KerasTensor mixed_8(const KerasTensor& x, int number) {
  const KerasTensor one = unit(x, 320, 1);
  const KerasTensor three = unit(x, 384, 1);
  const KerasTensor three_1 = unit(three, 384, {1, 3}), three_2 = unit(three, 384, {3, 1});
  const KerasTensor threes = concatenate({three_1, three_2}, cat("mixed9_", number));
  const KerasTensor twice = unit(unit(x, 448, 1), 384, 3);
  const KerasTensor twice_1 = unit(twice, 384, {1, 3}), twice_2 = unit(twice, 384, {3, 1});
  const KerasTensor twices = concatenate({twice_1, twice_2});
  return concatenate({one, threes, twices, pooled_unit(x, 192)}, cat("mixed", 9 + number));
}

}  // namespace

Model InceptionV3(const ApplicationOptions& o) {
  const KerasTensor input = application_input("InceptionV3", o, 299, 75);
  KerasTensor x = stem(input);
  x = mixed_35(x, 32, "mixed0");
  x = mixed_35(x, 64, "mixed1");
  x = mixed_35(x, 64, "mixed2");
  {
    const KerasTensor three = shrinking_unit(x, 384, 3);
    const KerasTensor twice = shrinking_unit(unit(unit(x, 64, 1), 96, 3), 96, 3);
    x = concatenate({three, twice, max_pool(x, 3, 2, "")}, "mixed3");
  }
  x = mixed_17(x, 128, "mixed4");
  x = mixed_17(x, 160, "mixed5");
  x = mixed_17(x, 160, "mixed6");
  x = mixed_17(x, 192, "mixed7");
  {
    const KerasTensor three = shrinking_unit(unit(x, 192, 1), 320, 3);
    KerasTensor seven = unit(unit(unit(x, 192, 1), 192, {1, 7}), 192, {7, 1});
    seven = shrinking_unit(seven, 192, 3);
    x = concatenate({three, seven, max_pool(x, 3, 2, "")}, "mixed8");
  }
  x = mixed_8(x, 0);
  x = mixed_8(x, 1);
  x = o.include_top ? classifier(x, o, "avg_pool") : pooled_features(x, o);
  return finish_application(input, x, o, "inception_v3");
}

namespace {

// The first input plus a share of the second.
class CustomScaleImpl final : public LayerImpl {
 public:
  explicit CustomScaleImpl(double scale) : LayerImpl("CustomScaleLayer"), scale_(scale) {
    without_weights();
  }
  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions&) override {
    return {inputs[0] + inputs[1] * scale_};
  }
  void describe(Config& config) const override { config.set("scale", scale_); }

 private:
  double scale_;
};

KerasTensor residual_block(const KerasTensor& x, const std::vector<KerasTensor>& branches,
                           double scale, const std::string& name, bool activated = true) {
  const KerasTensor mixed = concatenate(branches, name + "_mixed");
  const KerasTensor up = conv(mixed, channels(x), 1, name + "_conv", {.use_bias = true});
  const KerasTensor sum = make_layer<CustomScaleImpl>(scale)({x, up});
  return activated ? activate(sum, "relu", name + "_ac") : sum;
}

KerasTensor block_35(const KerasTensor& x, int number) {
  const KerasTensor one = unit(x, 32, 1);
  const KerasTensor three = unit(unit(x, 32, 1), 32, 3);
  const KerasTensor twice = unit(unit(unit(x, 32, 1), 48, 3), 64, 3);
  return residual_block(x, {one, three, twice}, 0.17, cat("block35_", number));
}
KerasTensor block_17(const KerasTensor& x, int number) {
  const KerasTensor one = unit(x, 192, 1);
  const KerasTensor seven = unit(unit(unit(x, 128, 1), 160, {1, 7}), 192, {7, 1});
  return residual_block(x, {one, seven}, 0.1, cat("block17_", number));
}
KerasTensor block_8(const KerasTensor& x, int number, double scale, bool activated) {
  const KerasTensor one = unit(x, 192, 1);
  const KerasTensor three = unit(unit(unit(x, 192, 1), 224, {1, 3}), 256, {3, 1});
  return residual_block(x, {one, three}, scale, cat("block8_", number), activated);
}

}  // namespace

Model InceptionResNetV2(const ApplicationOptions& o) {
  const KerasTensor input = application_input("InceptionResNetV2", o, 299, 75);
  KerasTensor x = stem(input);
  {
    const KerasTensor one = unit(x, 96, 1);
    const KerasTensor five = unit(unit(x, 48, 1), 64, 5);
    const KerasTensor three = unit(unit(unit(x, 64, 1), 96, 3), 96, 3);
    x = concatenate({one, five, three, pooled_unit(x, 64)}, "mixed_5b");
  }
  for (int i = 1; i <= 10; ++i) x = block_35(x, i);
  {
    const KerasTensor three = shrinking_unit(x, 384, 3);
    const KerasTensor twice = shrinking_unit(unit(unit(x, 256, 1), 256, 3), 384, 3);
    x = concatenate({three, twice, max_pool(x, 3, 2, "")}, "mixed_6a");
  }
  for (int i = 1; i <= 20; ++i) x = block_17(x, i);
  {
    const KerasTensor first = shrinking_unit(unit(x, 256, 1), 384, 3);
    const KerasTensor second = shrinking_unit(unit(x, 256, 1), 288, 3);
    const KerasTensor third = shrinking_unit(unit(unit(x, 256, 1), 288, 3), 320, 3);
    x = concatenate({first, second, third, max_pool(x, 3, 2, "")}, "mixed_7a");
  }
  for (int i = 1; i <= 9; ++i) x = block_8(x, i, 0.2, true);
  x = block_8(x, 10, 1, false);
  x = batch_norm(conv(x, 1536, 1, "conv_7b"), "conv_7b_bn", {.scale = false});
  x = activate(x, "relu", "conv_7b_ac");
  x = o.include_top ? classifier(x, o, "avg_pool") : pooled_features(x, o);
  return finish_application(input, x, o, "inception_resnet_v2");
}

}  // namespace tandem::keras::applications
