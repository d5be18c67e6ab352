#include <array>

#include "tandem/core/error.h"
#include "tandem/keras/internal/application_blocks.h"

// Simonyan & Zisserman 2014, "Very Deep Convolutional Networks for Large-Scale Image Recognition".

namespace tandem::keras::applications {
namespace {

using namespace internal;

Model vgg(const char* who, const std::array<int, 5>& depths, const ApplicationOptions& o,
          const std::string& name) {
  constexpr std::array<std::int64_t, 5> kFilters{64, 128, 256, 512, 512};
  const KerasTensor input = application_input(who, o, 224);
  KerasTensor x = input;
  for (std::size_t block = 0; block < depths.size(); ++block) {
    const std::string prefix = cat("block", block + 1);
    for (int i = 1; i <= depths[block]; ++i) {
      x = conv(x, kFilters[block], 3, cat(prefix, "_conv", i),
               {.use_bias = true, .activation = "relu"});
    }
    x = max_pool(x, 2, 2, prefix + "_pool");
  }
  if (o.include_top) {
    x = Flatten({.name = "flatten"})(x);
    x = Dense(4096, {.activation = "relu", .name = "fc1"})(x);
    x = Dense(4096, {.activation = "relu", .name = "fc2"})(x);
    x = Dense(o.classes, {.activation = o.classifier_activation, .name = "predictions"})(x);
  } else {
    x = pooled_features(x, o);
  }
  return finish_application(input, x, o, name);
}

}  // namespace

Model VGG16(const ApplicationOptions& o) { return vgg("VGG16", {2, 2, 3, 3, 3}, o, "vgg16"); }
Model VGG19(const ApplicationOptions& o) { return vgg("VGG19", {2, 2, 4, 4, 4}, o, "vgg19"); }

}  // namespace tandem::keras::applications
