#include "tandem/keras/layers/upsampling.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/images.h"
#include "tandem/keras/internal/spatial.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/image_ops.h"
#include "tandem/ops/operators.h"

namespace tandem::keras {
namespace {

using internal::Sizes;

class UpSamplingImpl final : public LayerImpl {
 public:
  UpSamplingImpl(const std::string& class_name, Sizes size, const UpSampling2DOptions& o)
      : LayerImpl(class_name, {.name = o.name, .dtype = o.dtype}),
        size_(std::move(size)),
        options_(o),
        first_(internal::ops_data_format(class_name, o.data_format) == "NHWC" ? 1 : 2) {
    internal::require_positive_sizes(class_name, "size", size_);
    const std::string& how = o.interpolation;
    if (how != "nearest" && how != "bilinear" && how != "bicubic" && how != "lanczos3" &&
        how != "lanczos5") {
      throw InvalidArgumentError(
          cat(class_name,
              ": interpolation must be 'nearest', 'bilinear', 'bicubic', 'lanczos3' or "
              "'lanczos5', got '",
              how, "'."));
    }
    without_weights();
    require_rank(static_cast<int>(size_.size()) + 2);
  }

  Tensor call(const Tensor& x, bool) override {
    if (options_.interpolation != "nearest") return resize(x);
    Tensor y = x;
    for (std::size_t i = 0; i < size_.size(); ++i) {
      if (size_[i] > 1) y = repeat(std::move(y), size_[i], first_ + static_cast<int>(i));
    }
    return y;
  }

 private:
  Tensor resize(const Tensor& x) const {
    const Tensor images = first_ == 1 ? x : transpose(x, {0, 2, 3, 1});
    const std::int64_t height = images.dim(1);
    const std::int64_t width = images.dim(2);
    const Tensor wanted =
        height >= 0 && width >= 0
            ? IntList{checked_multiply(height, size_[0]), checked_multiply(width, size_[1])}.tensor(
                  int32)
            : slice(shape(images), {1}, {2}) * IntList(size_).tensor(int32);
    const Tensor y = cast(resized(images, wanted), x.dtype());
    return first_ == 1 ? y : transpose(y, {0, 3, 1, 2});
  }
  Tensor resized(const Tensor& images, const Tensor& wanted) const {
    const image::ResizeOptions centers{.half_pixel_centers = true};
    if (options_.interpolation == "bilinear")
      return image::resize_bilinear(images, wanted, centers);
    if (options_.interpolation == "bicubic") return image::resize_bicubic(images, wanted, centers);
    const std::vector<float> factors{static_cast<float>(size_[0]), static_cast<float>(size_[1])};
    return image::scale_and_translate(images, wanted, Tensor::from(factors), Tensor{0.0f, 0.0f},
                                      options_.interpolation, /*antialias=*/false);
  }

  Sizes size_;
  UpSampling2DOptions options_;
  int first_;
};

constexpr auto k1D = [](auto& a, auto&, auto& size) { a("size", size); };
constexpr auto k2D = [](auto& a, auto& o, auto& size) {
  a("size", size);
  a("data_format", o.data_format);
  a("interpolation", o.interpolation);
};
constexpr auto k3D = [](auto& a, auto& o, auto& size) {
  a("size", size);
  a("data_format", o.data_format);
};

}  // namespace

UpSampling1D::UpSampling1D(std::int64_t size, const NamedOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<UpSamplingImpl>(
              "UpSampling1D", Sizes{size},
              UpSampling2DOptions{.name = options.name, .dtype = options.dtype}),
          k1D, options, size)) {}
UpSampling2D::UpSampling2D(Size2D size, const UpSampling2DOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<UpSamplingImpl>("UpSampling2D", internal::sizes_of(size), options), k2D,
          options, size)) {}
UpSampling3D::UpSampling3D(Size3D size, const UpSampling3DOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<UpSamplingImpl>("UpSampling3D", internal::sizes_of(size),
                                           UpSampling2DOptions{.data_format = options.data_format,
                                                               .name = options.name,
                                                               .dtype = options.dtype}),
          k3D, options, size)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<UpSampling1D, NamedOptions, std::int64_t>("UpSampling1D", k1D),
    internal::register_layer_class<UpSampling2D, UpSampling2DOptions, Size2D>("UpSampling2D", k2D),
    internal::register_layer_class<UpSampling3D, UpSampling3DOptions, Size3D>("UpSampling3D", k3D)};
}  // namespace

}  // namespace tandem::keras
