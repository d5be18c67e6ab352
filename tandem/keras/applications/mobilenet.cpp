#include <cmath>
#include <cstdio>
#include <string>

#include "tandem/core/error.h"
#include "tandem/keras/internal/application_blocks.h"
#include "tandem/keras/keras_tensor_ops.h"

// Howard et al. 2017, "MobileNets"; Sandler et al. 2018, "MobileNetV2: Inverted Residuals and
// Linear Bottlenecks"; Howard et al. 2019, "Searching for MobileNetV3".

namespace tandem::keras::applications {
namespace {

using namespace internal;

KerasTensor relu6(const KerasTensor& x, const std::string& name) {
  return ReLU({.max_value = 6, .name = name})(x);
}

std::int64_t scaled(std::int64_t filters, double alpha) {
  return static_cast<std::int64_t>(static_cast<double>(filters) * alpha);
}

// "mobilenet_1.00_224"
std::string name_of(const char* family, double alpha, const KerasTensor& input) {
  char number[32];
  std::snprintf(number, sizeof number, "%.2f", alpha);
  const std::int64_t rows = input.shape().dim(1);
  return cat(family, "_", number, "_", rows < 0 ? std::string("None") : std::to_string(rows));
}

KerasTensor depthwise_block(KerasTensor x, std::int64_t filters, std::int64_t stride, int number,
                            const MobileNetOptions& o) {
  if (stride > 1) x = zero_pad(x, {{0, 1}, {0, 1}}, cat("conv_pad_", number));
  const std::string dw = cat("conv_dw_", number), pw = cat("conv_pw_", number);
  x = depthwise(x, 3, dw, {.strides = stride, .padding = stride > 1 ? "valid" : "same"},
                o.depth_multiplier);
  x = relu6(batch_norm(x, dw + "_bn"), dw + "_relu");
  x = conv(x, scaled(filters, o.alpha), 1, pw);
  return relu6(batch_norm(x, pw + "_bn"), pw + "_relu");
}

}  // namespace

Model MobileNet(const MobileNetOptions& options) {
  const ApplicationOptions o = shared_options(options);
  const KerasTensor input = application_input("MobileNet", o, 224);
  KerasTensor x = conv(input, scaled(32, options.alpha), 3, "conv1", {.strides = 2});
  x = relu6(batch_norm(x, "conv1_bn"), "conv1_relu");
  constexpr std::int64_t kFilters[] = {64,  128, 128, 256, 256,  512, 512,
                                       512, 512, 512, 512, 1024, 1024};
  for (int number = 1; number <= 13; ++number) {
    const bool shrinks = number == 2 || number == 4 || number == 6 || number == 12;
    x = depthwise_block(x, kFilters[number - 1], shrinks ? 2 : 1, number, options);
  }
  if (o.include_top) {
    x = GlobalAveragePooling2D({.keepdims = true})(x);
    x = Dropout(options.dropout, {.name = "dropout"})(x);
    x = conv(x, o.classes, 1, "conv_preds", {.use_bias = true});
    x = Reshape({o.classes}, {.name = "reshape_2"})(x);
    x = activate(x, o.classifier_activation, "predictions");
  } else {
    x = pooled_features(x, o);
  }
  return finish_application(input, x, o, name_of("mobilenet", options.alpha, input));
}

namespace {

constexpr NormBlock kNorm{.momentum = 0.999};

KerasTensor inverted_residual(const KerasTensor& input, int number, std::int64_t expansion,
                              std::int64_t wanted, std::int64_t stride, double alpha) {
  const std::int64_t in = channels(input);
  const std::int64_t filters = multiple_of_8(static_cast<double>(scaled(wanted, alpha)));
  const std::string prefix = number ? cat("block_", number, "_") : "expanded_conv_";
  KerasTensor x = input;
  if (number) {
    x = conv(x, expansion * in, 1, prefix + "expand");
    x = relu6(batch_norm(x, prefix + "expand_BN", kNorm), prefix + "expand_relu");
  }
  if (stride == 2) x = zero_pad(x, strided_margins(x, 3), prefix + "pad");
  x = depthwise(x, 3, prefix + "depthwise",
                {.strides = stride, .padding = stride == 1 ? "same" : "valid"});
  x = relu6(batch_norm(x, prefix + "depthwise_BN", kNorm), prefix + "depthwise_relu");
  x = conv(x, filters, 1, prefix + "project");
  x = batch_norm(x, prefix + "project_BN", kNorm);
  return in == filters && stride == 1 ? add(input, x, prefix + "add") : x;
}

}  // namespace

Model MobileNetV2(const MobileNetV2Options& options) {
  const ApplicationOptions o = shared_options(options);
  const double alpha = options.alpha;
  const KerasTensor input = application_input("MobileNetV2", o, 224);
  KerasTensor x = conv(input, multiple_of_8(32 * alpha), 3, "Conv1", {.strides = 2});
  x = relu6(batch_norm(x, "bn_Conv1", kNorm), "Conv1_relu");
  struct Stage {
    std::int64_t filters, repeats, stride;
  };
  constexpr Stage kStages[] = {{16, 1, 1}, {24, 2, 2},  {32, 3, 2}, {64, 4, 2},
                               {96, 3, 1}, {160, 3, 2}, {320, 1, 1}};
  int number = 0;
  for (const Stage& stage : kStages) {
    for (std::int64_t i = 0; i < stage.repeats; ++i) {
      x = inverted_residual(x, number, number ? 6 : 1, stage.filters, i == 0 ? stage.stride : 1,
                            alpha);
      ++number;
    }
  }
  x = conv(x, alpha > 1 ? multiple_of_8(1280 * alpha) : 1280, 1, "Conv_1", {.padding = "valid"});
  x = relu6(batch_norm(x, "Conv_1_bn", kNorm), "out_relu");
  return finish_application(input, classifier(x, o), o, name_of("mobilenetv2", alpha, input));
}

namespace {

// A row of the tables of the third version's paper.
struct Row {
  double expansion;
  std::int64_t filters;
  int kernel_size;  // 0: 5, or 3 if minimalistic
  int stride;
  bool squeezes;
  bool hard_swish;
};

class MobileNetV3 {
 public:
  MobileNetV3(const char* who, const MobileNetV3Options& options) : who_(who), options_(options) {}

  Model build(const std::vector<Row>& rows, std::int64_t last_filters,
              const std::string& name) const {
    ApplicationOptions o = shared_options(options_);
    if (o.input_shape.empty()) o.input_shape = {-1, -1, 3};
    const KerasTensor input = application_input(who_, o, -1);
    KerasTensor x = input;
    if (options_.include_preprocessing) x = Rescaling(1 / 127.5, -1)(x);
    x = conv(x, 16, 3, "conv", {.strides = 2});
    x = activation(batch_norm(x, "conv_bn", kNorm), true);
    for (std::size_t i = 0; i < rows.size(); ++i) x = block(x, rows[i], static_cast<int>(i));
    x = conv(x, multiple_of_8(static_cast<double>(channels(x)) * 6), 1, "conv_1");
    x = activation(batch_norm(x, "conv_1_bn", kNorm), true);
    if (!o.include_top) {
      return finish_application(input, pooled_features(x, o, "avg_pool", "max_pool"), o, name);
    }
    if (options_.alpha > 1)
      last_filters = multiple_of_8(static_cast<double>(last_filters) * options_.alpha);
    x = GlobalAveragePooling2D({.keepdims = true})(x);
    x = activation(conv(x, last_filters, 1, "conv_2", {.use_bias = true}), true);
    if (options_.dropout_rate > 0) x = Dropout(options_.dropout_rate)(x);
    x = Flatten()(conv(x, o.classes, 1, "logits", {.use_bias = true}));
    x = activate(x, o.classifier_activation, "predictions");
    return finish_application(input, x, o, name);
  }

 private:
  KerasTensor activation(const KerasTensor& x, bool hard_swish) const {
    if (hard_swish && !options_.minimalistic) return activate(x, "hard_swish");
    return ReLU()(x);
  }

  KerasTensor squeezed(const KerasTensor& x, std::int64_t filters,
                       const std::string& prefix) const {
    KerasTensor s =
        GlobalAveragePooling2D({.keepdims = true, .name = prefix + "squeeze_excite_avg_pool"})(x);
    s = conv(s, multiple_of_8(static_cast<double>(filters) * 0.25), 1,
             prefix + "squeeze_excite_conv", {.use_bias = true});
    s = ReLU({.name = prefix + "squeeze_excite_relu"})(s);
    s = conv(s, filters, 1, prefix + "squeeze_excite_conv_1", {.use_bias = true});
    s = relu6(s + 3.0, "") * (1.0 / 6.0);
    return Multiply({.name = prefix + "squeeze_excite_mul"})({x, s});
  }

  KerasTensor block(const KerasTensor& input, const Row& row, int number) const {
    const std::int64_t in = channels(input);
    const std::int64_t filters = multiple_of_8(static_cast<double>(row.filters) * options_.alpha);
    const std::int64_t expanded = multiple_of_8(static_cast<double>(in) * row.expansion);
    const int kernel = row.kernel_size ? row.kernel_size : options_.minimalistic ? 3 : 5;
    const std::string prefix = number ? cat("expanded_conv_", number, "_") : "expanded_conv_";
    KerasTensor x = input;
    if (number) {
      x = batch_norm(conv(x, expanded, 1, prefix + "expand"), prefix + "expand_bn", kNorm);
      x = activation(x, row.hard_swish);
    }
    if (row.stride == 2) x = zero_pad(x, strided_margins(x, kernel), prefix + "depthwise_pad");
    x = depthwise(x, kernel, prefix + "depthwise",
                  {.strides = row.stride, .padding = row.stride == 1 ? "same" : "valid"});
    x = activation(batch_norm(x, prefix + "depthwise_bn", kNorm), row.hard_swish);
    if (row.squeezes && !options_.minimalistic) x = squeezed(x, expanded, prefix);
    x = batch_norm(conv(x, filters, 1, prefix + "project"), prefix + "project_bn", kNorm);
    return row.stride == 1 && in == filters ? add(input, x, prefix + "add") : x;
  }

  const char* who_;
  const MobileNetV3Options& options_;
};

}  // namespace

Model MobileNetV3Small(const MobileNetV3Options& o) {
  return MobileNetV3("MobileNetV3Small", o)
      .build({{1, 16, 3, 2, true, false},
              {72.0 / 16, 24, 3, 2, false, false},
              {88.0 / 24, 24, 3, 1, false, false},
              {4, 40, 0, 2, true, true},
              {6, 40, 0, 1, true, true},
              {6, 40, 0, 1, true, true},
              {3, 48, 0, 1, true, true},
              {3, 48, 0, 1, true, true},
              {6, 96, 0, 2, true, true},
              {6, 96, 0, 1, true, true},
              {6, 96, 0, 1, true, true}},
             1024, "MobileNetV3Small");
}
Model MobileNetV3Large(const MobileNetV3Options& o) {
  return MobileNetV3("MobileNetV3Large", o)
      .build({{1, 16, 3, 1, false, false},
              {4, 24, 3, 2, false, false},
              {3, 24, 3, 1, false, false},
              {3, 40, 0, 2, true, false},
              {3, 40, 0, 1, true, false},
              {3, 40, 0, 1, true, false},
              {6, 80, 3, 2, false, true},
              {2.5, 80, 3, 1, false, true},
              {2.3, 80, 3, 1, false, true},
              {2.3, 80, 3, 1, false, true},
              {6, 112, 3, 1, true, true},
              {6, 112, 3, 1, true, true},
              {6, 160, 0, 2, true, true},
              {6, 160, 0, 1, true, true},
              {6, 160, 0, 1, true, true}},
             1280, "MobileNetV3Large");
}

}  // namespace tandem::keras::applications
