#include "tandem/keras/layers/conv_transpose.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/conv_base.h"

namespace tandem::keras {
namespace {

template <class Size>
class ConvTransposeImpl final : public internal::ConvBase<ConvTransposeOptions<Size>> {
  using Base = internal::ConvBase<ConvTransposeOptions<Size>>;

 public:
  ConvTransposeImpl(const std::string& class_name, std::int64_t filters, const Size& kernel_size,
                    const ConvTransposeOptions<Size>& o)
      : Base(class_name, internal::sizes_of(kernel_size), o), filters_(filters) {
    internal::require_positive(class_name, "filters", filters);
    if (o.output_padding) output_padding_ = internal::sizes_of(*o.output_padding);
    for (std::size_t i = 0; i < output_padding_.size(); ++i) {
      if (output_padding_[i] < 0 || output_padding_[i] >= this->windows_.strides[i]) {
        throw InvalidArgumentError(
            cat(class_name, ": output_padding must be from 0 to strides - 1,", " got ",
                output_padding_[i], " for a stride of ", this->windows_.strides[i], "."));
      }
    }
    this->refuse_strides_with_dilation();
  }

  void build(const PartialShape& input) override {
    const auto& o = this->options_;
    const std::int64_t channels = this->channels_of(input);
    kernel_ = this->add_weight("kernel", this->kernel_shape({filters_, channels}),
                               {.initializer = o.kernel_initializer,
                                .regularizer = o.kernel_regularizer,
                                .constraint = o.kernel_constraint});
    this->add_bias(filters_);
  }

  Tensor apply_kernel(const Tensor& x) const override {
    return convolve_transposed(x, kernel_, this->windows_, output_padding_);
  }

 private:
  std::int64_t filters_;
  internal::Sizes output_padding_;
  Variable kernel_;
};

constexpr auto kArguments = [](auto& a, auto& o, auto& filters, auto& kernel_size) {
  a("filters", filters);
  a("kernel_size", kernel_size);
  internal::kConvArguments(a, o);
  a("output_padding", o.output_padding);
  a("kernel_initializer", o.kernel_initializer);
  a("kernel_regularizer", o.kernel_regularizer);
  a("kernel_constraint", o.kernel_constraint);
  a.ignore("groups");
};

}  // namespace

Conv1DTranspose::Conv1DTranspose(std::int64_t filters, std::int64_t kernel_size,
                                 const Conv1DTransposeOptions& options)
    : Layer(internal::with_arguments(std::make_shared<ConvTransposeImpl<std::int64_t>>(
                                         "Conv1DTranspose", filters, kernel_size, options),
                                     kArguments, options, filters, kernel_size)) {}
Conv2DTranspose::Conv2DTranspose(std::int64_t filters, Size2D kernel_size,
                                 const Conv2DTransposeOptions& options)
    : Layer(internal::with_arguments(std::make_shared<ConvTransposeImpl<Size2D>>(
                                         "Conv2DTranspose", filters, kernel_size, options),
                                     kArguments, options, filters, kernel_size)) {}
Conv3DTranspose::Conv3DTranspose(std::int64_t filters, Size3D kernel_size,
                                 const Conv3DTransposeOptions& options)
    : Layer(internal::with_arguments(std::make_shared<ConvTransposeImpl<Size3D>>(
                                         "Conv3DTranspose", filters, kernel_size, options),
                                     kArguments, options, filters, kernel_size)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<Conv1DTranspose, Conv1DTransposeOptions, std::int64_t,
                                   std::int64_t>("Conv1DTranspose", kArguments),
    internal::register_layer_class<Conv2DTranspose, Conv2DTransposeOptions, std::int64_t, Size2D>(
        "Conv2DTranspose", kArguments),
    internal::register_layer_class<Conv3DTranspose, Conv3DTransposeOptions, std::int64_t, Size3D>(
        "Conv3DTranspose", kArguments)};
}  // namespace

}  // namespace tandem::keras
