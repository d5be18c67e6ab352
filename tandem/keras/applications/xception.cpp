#include <string>

#include "tandem/core/error.h"
#include "tandem/keras/internal/application_blocks.h"

// Chollet 2016, "Xception: Deep Learning with Depthwise Separable Convolutions".

namespace tandem::keras::applications {
namespace {

using namespace internal;

KerasTensor separable_norm(const KerasTensor& x, std::int64_t filters, const std::string& name) {
  return batch_norm(separable(x, filters, 3, name), name + "_bn");
}

// Two separable convolutions at half the size, beside a strided shortcut.
KerasTensor shrinking_block(KerasTensor x, int number, std::int64_t first, std::int64_t second,
                            bool begins_with_relu) {
  const std::string block = cat("block", number);
  KerasTensor shortcut = batch_norm(conv(x, second, 1, "", {.strides = 2}), "");
  if (begins_with_relu) x = activate(x, "relu", block + "_sepconv1_act");
  x = separable_norm(x, first, block + "_sepconv1");
  x = activate(x, "relu", block + "_sepconv2_act");
  x = separable_norm(x, second, block + "_sepconv2");
  return add(max_pool(x, 3, 2, block + "_pool", "same"), shortcut);
}

}  // namespace

Model Xception(const ApplicationOptions& o) {
  const KerasTensor input = application_input("Xception", o, 299, 71);
  KerasTensor x = conv(input, 32, 3, "block1_conv1", {.strides = 2, .padding = "valid"});
  x = activate(batch_norm(x, "block1_conv1_bn"), "relu", "block1_conv1_act");
  x = conv(x, 64, 3, "block1_conv2", {.padding = "valid"});
  x = activate(batch_norm(x, "block1_conv2_bn"), "relu", "block1_conv2_act");
  x = shrinking_block(x, 2, 128, 128, false);
  x = shrinking_block(x, 3, 256, 256, true);
  x = shrinking_block(x, 4, 728, 728, true);
  for (int number = 5; number < 13; ++number) {
    const KerasTensor shortcut = x;
    for (int i = 1; i <= 3; ++i) {
      const std::string name = cat("block", number, "_sepconv", i);
      x = separable_norm(activate(x, "relu", name + "_act"), 728, name);
    }
    x = add(x, shortcut);
  }
  x = shrinking_block(x, 13, 728, 1024, true);
  x = activate(separable_norm(x, 1536, "block14_sepconv1"), "relu", "block14_sepconv1_act");
  x = activate(separable_norm(x, 2048, "block14_sepconv2"), "relu", "block14_sepconv2_act");
  x = o.include_top ? classifier(x, o, "avg_pool") : pooled_features(x, o);
  return finish_application(input, x, o, "xception");
}

}  // namespace tandem::keras::applications
