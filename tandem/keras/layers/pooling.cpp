#include "tandem/keras/layers/pooling.h"

#include "tandem/keras/internal/images.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/pool_ops.h"
#include "tandem/ops/reduction_ops.h"

namespace tandem::keras {
namespace {

class Pooling final : public LayerImpl {
 public:
  using Function = Tensor (*)(Tensor, Size2D, Size2D, const nn::Padding&, std::string_view);

  Pooling(const std::string& class_name, const Pooling2DOptions& o, Function function)
      : LayerImpl(class_name, {.name = o.name}),
        options_(o),
        function_(function),
        strides_(o.strides.value_or(o.pool_size)),
        padding_(internal::ops_padding(class_name, o.padding)),
        format_(internal::ops_data_format(class_name, o.data_format)) {
    internal::require_positive_size(class_name, "pool_size", o.pool_size);
    internal::require_positive_size(class_name, "strides", strides_);
    without_weights();
    require_rank(4);
  }

  Tensor call(const Tensor& x, bool) override {
    return function_(x, options_.pool_size, strides_, padding_, format_);
  }
  void describe(Config& config) const override {
    config.set("pool_size",
               std::vector<std::int64_t>{options_.pool_size.height, options_.pool_size.width});
    config.set("strides", std::vector<std::int64_t>{strides_.height, strides_.width});
    config.set("padding", options_.padding).set("data_format", options_.data_format);
  }

 private:
  Pooling2DOptions options_;
  Function function_;
  Size2D strides_;
  nn::Padding padding_;
  std::string format_;
};

class GlobalPooling final : public LayerImpl {
 public:
  using Function = Tensor (*)(Tensor, Axes, bool);

  GlobalPooling(const std::string& class_name, const GlobalPooling2DOptions& o, Function function)
      : LayerImpl(class_name, {.name = o.name}), options_(o), function_(function) {
    const bool last = internal::ops_data_format(class_name, o.data_format) == "NHWC";
    axes_ = last ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{2, 3};
    without_weights();
    require_rank(4);
  }

  Tensor call(const Tensor& x, bool) override { return function_(x, axes_, options_.keepdims); }
  void describe(Config& config) const override {
    config.set("data_format", options_.data_format).set("keepdims", options_.keepdims);
  }

 private:
  GlobalPooling2DOptions options_;
  Function function_;
  std::vector<std::int64_t> axes_;
};

}  // namespace

MaxPooling2D::MaxPooling2D(const Pooling2DOptions& options)
    : Layer(std::make_shared<Pooling>("MaxPooling2D", options, nn::max_pool2d)) {}
AveragePooling2D::AveragePooling2D(const Pooling2DOptions& options)
    : Layer(std::make_shared<Pooling>("AveragePooling2D", options, nn::avg_pool2d)) {}
GlobalAveragePooling2D::GlobalAveragePooling2D(const GlobalPooling2DOptions& options)
    : Layer(std::make_shared<GlobalPooling>("GlobalAveragePooling2D", options, reduce_mean)) {}
GlobalMaxPooling2D::GlobalMaxPooling2D(const GlobalPooling2DOptions& options)
    : Layer(std::make_shared<GlobalPooling>("GlobalMaxPooling2D", options, reduce_max)) {}

}  // namespace tandem::keras
