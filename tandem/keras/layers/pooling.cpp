#include "tandem/keras/layers/pooling.h"

#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/spatial.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/positional.h"

namespace tandem::keras {
namespace {

using internal::PoolKind;
using internal::Sizes;

class PoolingImpl final : public LayerImpl {
 public:
  template <class Size>
  PoolingImpl(const std::string& class_name, PoolKind kind, const PoolingOptions<Size>& o)
      : LayerImpl(class_name, {.name = o.name, .dtype = o.dtype}),
        kind_(kind),
        padding_(o.padding),
        data_format_(o.data_format),
        pool_size_(internal::sizes_of(o.pool_size)),
        windows_(internal::make_windows(class_name, o.padding, o.data_format,
                                        internal::sizes_of(o.strides.value_or(o.pool_size)),
                                        Sizes(pool_size_.size(), 1))) {
    internal::require_positive_sizes(class_name, "pool_size", pool_size_);
    without_weights();
    require_rank(static_cast<int>(pool_size_.size()) + 2);
  }

  Tensor call(const Tensor& x, bool) override {
    Tensor y = pool(kind_, x, pool_size_, windows_);
    if (internal::has_no_window(x, y)) internal::throw_no_window(prefix(), x, y);
    return y;
  }

 private:
  PoolKind kind_;
  std::string padding_;
  std::string data_format_;
  Sizes pool_size_;
  internal::Windows windows_;
};

constexpr auto kArguments = [](auto& a, auto& o) {
  a("pool_size", o.pool_size);
  a("strides", o.strides);
  a("padding", o.padding);
  a("data_format", o.data_format);
};

// Throws InvalidArgumentError if the options have another window.
template <class Options, class Size>
Options with_window(const Options& options, const Size& pool_size) {
  return internal::with_argument(options, &Options::pool_size, pool_size, "pool_size");
}

}  // namespace

MaxPooling1D::MaxPooling1D(std::int64_t pool_size, const Pooling1DOptions& options)
    : Layer(internal::with_arguments(std::make_shared<PoolingImpl>("MaxPooling1D", PoolKind::kMax,
                                                                   with_window(options, pool_size)),
                                     kArguments, with_window(options, pool_size))) {}
MaxPooling2D::MaxPooling2D(Size2D pool_size, const Pooling2DOptions& options)
    : Layer(internal::with_arguments(std::make_shared<PoolingImpl>("MaxPooling2D", PoolKind::kMax,
                                                                   with_window(options, pool_size)),
                                     kArguments, with_window(options, pool_size))) {}
AveragePooling1D::AveragePooling1D(std::int64_t pool_size, const Pooling1DOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<PoolingImpl>("AveragePooling1D", PoolKind::kAverage,
                                        with_window(options, pool_size)),
          kArguments, with_window(options, pool_size))) {}
AveragePooling2D::AveragePooling2D(Size2D pool_size, const Pooling2DOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<PoolingImpl>("AveragePooling2D", PoolKind::kAverage,
                                        with_window(options, pool_size)),
          kArguments, with_window(options, pool_size))) {}
MaxPooling3D::MaxPooling3D(Size3D pool_size, const Pooling3DOptions& options)
    : Layer(internal::with_arguments(std::make_shared<PoolingImpl>("MaxPooling3D", PoolKind::kMax,
                                                                   with_window(options, pool_size)),
                                     kArguments, with_window(options, pool_size))) {}
AveragePooling3D::AveragePooling3D(Size3D pool_size, const Pooling3DOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<PoolingImpl>("AveragePooling3D", PoolKind::kAverage,
                                        with_window(options, pool_size)),
          kArguments, with_window(options, pool_size))) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<MaxPooling1D, Pooling1DOptions>("MaxPooling1D", kArguments),
    internal::register_layer_class<MaxPooling2D, Pooling2DOptions>("MaxPooling2D", kArguments),
    internal::register_layer_class<MaxPooling3D, Pooling3DOptions>("MaxPooling3D", kArguments),
    internal::register_layer_class<AveragePooling1D, Pooling1DOptions>("AveragePooling1D",
                                                                       kArguments),
    internal::register_layer_class<AveragePooling2D, Pooling2DOptions>("AveragePooling2D",
                                                                       kArguments),
    internal::register_layer_class<AveragePooling3D, Pooling3DOptions>("AveragePooling3D",
                                                                       kArguments)};
}  // namespace

}  // namespace tandem::keras
