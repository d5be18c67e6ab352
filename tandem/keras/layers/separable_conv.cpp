#include "tandem/keras/layers/separable_conv.h"

#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/conv_base.h"

namespace tandem::keras {
namespace {

template <class Size>
class SeparableConvImpl final : public internal::ConvBase<SeparableConvOptions<Size>> {
  using Base = internal::ConvBase<SeparableConvOptions<Size>>;

 public:
  SeparableConvImpl(const std::string& class_name, std::int64_t filters, const Size& kernel_size,
                    const SeparableConvOptions<Size>& o)
      : Base(class_name, internal::sizes_of(kernel_size), o),
        filters_(filters),
        one_step_(this->windows_) {
    internal::require_positive(class_name, "filters", filters);
    internal::require_positive(class_name, "depth_multiplier", o.depth_multiplier);
    internal::require_equal_strides(class_name, this->windows_.strides);
    one_step_.padding = "VALID";
    one_step_.strides.assign(one_step_.strides.size(), 1);
    one_step_.dilations = one_step_.strides;
  }

  void build(const PartialShape& input) override {
    const auto& o = this->options_;
    const std::int64_t channels = this->channels_of(input);
    depthwise_ =
        this->add_weight("depthwise_kernel", this->kernel_shape({channels, o.depth_multiplier}),
                         {.initializer = o.depthwise_initializer,
                          .regularizer = o.depthwise_regularizer,
                          .constraint = o.depthwise_constraint});
    Shape pointwise;
    for (int i = 0; i < this->dims(); ++i) pointwise.add_dim(1);
    pointwise.add_dim(checked_multiply(channels, o.depth_multiplier));
    pointwise.add_dim(filters_);
    pointwise_ = this->add_weight("pointwise_kernel", pointwise,
                                  {.initializer = o.pointwise_initializer,
                                   .regularizer = o.pointwise_regularizer,
                                   .constraint = o.pointwise_constraint});
    this->add_bias(filters_);
  }

  Tensor apply_kernel(const Tensor& x) const override {
    return convolve(convolve_depthwise(x, depthwise_, this->windows_), pointwise_, one_step_);
  }

 private:
  std::int64_t filters_;
  internal::Windows one_step_;
  Variable depthwise_;
  Variable pointwise_;
};

constexpr auto kArguments = [](auto& a, auto& o, auto& filters, auto& kernel_size) {
  a("filters", filters);
  a("kernel_size", kernel_size);
  internal::kConvArguments(a, o);
  a("depth_multiplier", o.depth_multiplier);
  a("depthwise_initializer", o.depthwise_initializer);
  a("pointwise_initializer", o.pointwise_initializer);
  a("depthwise_regularizer", o.depthwise_regularizer);
  a("depthwise_constraint", o.depthwise_constraint);
  a("pointwise_regularizer", o.pointwise_regularizer);
  a("pointwise_constraint", o.pointwise_constraint);
  for (const char* name : {"groups", "kernel_initializer", "kernel_regularizer"}) a.ignore(name);
};

}  // namespace

SeparableConv1D::SeparableConv1D(std::int64_t filters, std::int64_t kernel_size,
                                 const SeparableConv1DOptions& options)
    : Layer(internal::with_arguments(std::make_shared<SeparableConvImpl<std::int64_t>>(
                                         "SeparableConv1D", filters, kernel_size, options),
                                     kArguments, options, filters, kernel_size)) {}
SeparableConv2D::SeparableConv2D(std::int64_t filters, Size2D kernel_size,
                                 const SeparableConv2DOptions& options)
    : Layer(internal::with_arguments(std::make_shared<SeparableConvImpl<Size2D>>(
                                         "SeparableConv2D", filters, kernel_size, options),
                                     kArguments, options, filters, kernel_size)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<SeparableConv1D, SeparableConv1DOptions, std::int64_t,
                                   std::int64_t>("SeparableConv1D", kArguments),
    internal::register_layer_class<SeparableConv2D, SeparableConv2DOptions, std::int64_t, Size2D>(
        "SeparableConv2D", kArguments)};
}  // namespace

}  // namespace tandem::keras
