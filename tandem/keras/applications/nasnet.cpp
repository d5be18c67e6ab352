#include <optional>
#include <string>

#include "tandem/core/error.h"
#include "tandem/keras/internal/application_blocks.h"

// Zoph et al. 2017, "Learning Transferable Architectures for Scalable Image Recognition".

namespace tandem::keras::applications {
namespace {

using namespace internal;

constexpr NormBlock kNorm{.momentum = 0.9997, .epsilon = 1e-3};

ConvBlock he(const std::string& padding = "same", std::int64_t stride = 1) {
  return {.strides = stride, .padding = padding, .initializer = "he_normal"};
}

// relu, separable convolution, normalization: twice.
KerasTensor separables(KerasTensor x, std::int64_t filters, std::int64_t size,
                       const std::string& id, std::int64_t stride = 1) {
  x = activate(x, "relu");
  std::string padding = "same";
  if (stride == 2) {
    x = zero_pad(x, strided_margins(x, size), "separable_conv_1_pad_" + id);
    padding = "valid";
  }
  x = separable(x, filters, size, "separable_conv_1_" + id,
                {.strides = stride, .padding = padding});
  x = activate(batch_norm(x, "separable_conv_1_bn_" + id, kNorm), "relu");
  x = separable(x, filters, size, "separable_conv_2_" + id);
  return batch_norm(x, "separable_conv_2_bn_" + id, kNorm);
}

// The output of the cell before the last, in the shape of the last one's.
KerasTensor adjusted(const std::optional<KerasTensor>& before, const KerasTensor& x,
                     std::int64_t filters, const std::string& id) {
  if (!before) return x;
  KerasTensor p = *before;
  if (p.shape().dim(2) != x.shape().dim(2)) {
    p = activate(p, "relu", "adjust_relu_1_" + id);
    KerasTensor p1 = average_pool(p, 1, 2, "adjust_avg_pool_1_" + id);
    p1 = conv(p1, filters / 2, 1, "adjust_conv_1_" + id, he());
    KerasTensor p2 = zero_pad(p, {{0, 1}, {0, 1}});
    p2 = Cropping2D({{1, 0}, {1, 0}})(p2);
    p2 = average_pool(p2, 1, 2, "adjust_avg_pool_2_" + id);
    p2 = conv(p2, filters / 2, 1, "adjust_conv_2_" + id, he());
    return batch_norm(concatenate({p1, p2}), "adjust_bn_" + id, kNorm);
  }
  if (channels(p) != filters) {
    p = conv(activate(p, "relu"), filters, 1, "adjust_conv_projection_" + id, he());
    return batch_norm(p, "adjust_bn_" + id, kNorm);
  }
  return p;
}

KerasTensor normal_cell(const KerasTensor& x, const std::optional<KerasTensor>& before,
                        std::int64_t filters, const std::string& id) {
  const KerasTensor p = adjusted(before, x, filters, id);
  KerasTensor h = conv(activate(x, "relu"), filters, 1, "normal_conv_1_" + id, he());
  h = batch_norm(h, "normal_bn_1_" + id, kNorm);
  const KerasTensor x1 =
      add(separables(h, filters, 5, "normal_left1_" + id),
          separables(p, filters, 3, "normal_right1_" + id), "normal_add_1_" + id);
  const KerasTensor x2 =
      add(separables(p, filters, 5, "normal_left2_" + id),
          separables(p, filters, 3, "normal_right2_" + id), "normal_add_2_" + id);
  const KerasTensor x3 =
      add(average_pool(h, 3, 1, "normal_left3_" + id, "same"), p, "normal_add_3_" + id);
  const KerasTensor x4 =
      add(average_pool(p, 3, 1, "normal_left4_" + id, "same"),
          average_pool(p, 3, 1, "normal_right4_" + id, "same"), "normal_add_4_" + id);
  const KerasTensor x5 =
      add(separables(h, filters, 3, "normal_left5_" + id), h, "normal_add_5_" + id);
  return concatenate({p, x1, x2, x3, x4, x5}, "normal_concat_" + id);
}

KerasTensor reduction_cell(const KerasTensor& x, const std::optional<KerasTensor>& before,
                           std::int64_t filters, const std::string& id) {
  const KerasTensor p = adjusted(before, x, filters, id);
  KerasTensor h = conv(activate(x, "relu"), filters, 1, "reduction_conv_1_" + id, he());
  h = batch_norm(h, "reduction_bn_1_" + id, kNorm);
  const KerasTensor h3 = zero_pad(h, strided_margins(h, 3), "reduction_pad_1_" + id);
  const KerasTensor x1 =
      add(separables(h, filters, 5, "reduction_left1_" + id, 2),
          separables(p, filters, 7, "reduction_right1_" + id, 2), "reduction_add_1_" + id);
  const KerasTensor x2 =
      add(max_pool(h3, 3, 2, "reduction_left2_" + id),
          separables(p, filters, 7, "reduction_right2_" + id, 2), "reduction_add_2_" + id);
  const KerasTensor x3 =
      add(average_pool(h3, 3, 2, "reduction_left3_" + id),
          separables(p, filters, 5, "reduction_right3_" + id, 2), "reduction_add3_" + id);
  const KerasTensor x4 = add(x2, average_pool(x1, 3, 1, "reduction_left4_" + id, "same"));
  const KerasTensor x5 = add(separables(x1, filters, 3, "reduction_left4_" + id),
                             max_pool(h3, 3, 2, "reduction_right5_" + id), "reduction_add4_" + id);
  return concatenate({x2, x3, x4, x5}, "reduction_concat_" + id);
}

struct Size {
  std::int64_t penultimate_filters;
  int blocks;
  std::int64_t stem_filters;
  bool skips_reduction;  // normal cells after a reduction see what was before it
  std::int64_t default_size;
};

Model nasnet_model(const char* who, const Size& size, ApplicationOptions o,
                   const std::string& name) {
  if (!o.include_top && o.input_shape.empty())
    o.input_shape = {size.default_size, size.default_size, 3};
  const KerasTensor input = application_input(who, o, size.default_size);
  const std::int64_t filters = size.penultimate_filters / 24;
  KerasTensor x = conv(input, size.stem_filters, 3, "stem_conv1", he("valid", 2));
  x = batch_norm(x, "stem_bn1", kNorm);
  std::optional<KerasTensor> before;
  const auto step = [&](const KerasTensor& made) {
    before.emplace(x);
    x = made;
  };
  step(reduction_cell(x, before, filters / 4, "stem_1"));
  step(reduction_cell(x, before, filters / 2, "stem_2"));
  for (int i = 0; i < size.blocks; ++i) step(normal_cell(x, before, filters, cat(i)));
  for (int part = 1; part <= 2; ++part) {
    const std::int64_t width = filters << part;
    const KerasTensor made = reduction_cell(x, before, width, cat("reduce_", part * size.blocks));
    if (!size.skips_reduction) before.emplace(x);
    x = made;
    for (int i = 0; i < size.blocks; ++i)
      step(normal_cell(x, before, width, cat(part * size.blocks + i + 1)));
  }
  x = classifier(activate(x, "relu"), o);
  return finish_application(input, x, o, name);
}

}  // namespace

Model NASNetMobile(const ApplicationOptions& o) {
  return nasnet_model("NASNetMobile", {1056, 4, 32, false, 224}, o, "nasnet_mobile");
}
Model NASNetLarge(const ApplicationOptions& o) {
  return nasnet_model("NASNetLarge", {4032, 6, 96, true, 331}, o, "nasnet_large");
}

}  // namespace tandem::keras::applications
