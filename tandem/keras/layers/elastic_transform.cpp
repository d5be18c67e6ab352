#include "tandem/keras/layers/elastic_transform.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/image_augmentation.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/conv_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

// Moves integers along an axis of `size` pixels into it; with "constant" those outside stay.
Tensor inside(const Tensor& at, const Tensor& size, const std::string& mode) {
  const Tensor one = ones_like(size);
  const auto mirrored = [&](const Tensor& i, const Tensor& n) {
    const Tensor last = maximum(n - one, one);
    return abs(floormod(i + last, last * 2) - last);
  };
  if (mode == "nearest") return maximum(minimum(at, size - one), zeros_like(size));
  if (mode == "wrap") return floormod(at, size);
  if (mode == "mirror") return minimum(mirrored(at, size), size - one);
  if (mode == "reflect") return floordiv(mirrored(at * 2 + 1, size * 2 + 1), one * 2);
  return at;
}

class ElasticImpl final : public internal::ImageAugmentation {
 public:
  explicit ElasticImpl(const ElasticTransformOptions& o)
      : ImageAugmentation("RandomElasticTransform", o.name, o.seed), options_(o) {
    for (const auto& [what, range] : {std::pair("factor", o.factor), std::pair("scale", o.scale)}) {
      internal::require_range("RandomElasticTransform", what, range.lower, 0, 1);
      internal::require_range("RandomElasticTransform", what, range.upper, 0, 1);
    }
    constexpr std::array kModes{"constant", "nearest", "wrap", "mirror", "reflect"};
    if (std::find(kModes.begin(), kModes.end(), o.fill_mode) == kModes.end()) {
      throw InvalidArgumentError(
          cat("RandomElasticTransform: fill_mode must be \"constant\", \"nearest\", \"wrap\", ",
              "\"mirror\" or \"reflect\", not '", o.fill_mode, "'."));
    }
    if (o.interpolation != "bilinear" && o.interpolation != "nearest") {
      throw InvalidArgumentError(
          cat("RandomElasticTransform: interpolation must be \"bilinear\" or \"nearest\", not '",
              o.interpolation, "'."));
    }
  }

 protected:
  Tensor change(const Tensor& images, const Tensor& count) override {
    if (options_.scale.upper == 0 || options_.factor.upper == 0) return images;
    const Tensor chance = draw_for(images, count, options_.factor.lower, options_.factor.upper);
    const Tensor chosen = draw_for(images, count, 0, 1) < chance;
    const Tensor sizes = shape(images);
    const Tensor height = cast(sizes[1], float32), width = cast(sizes[2], float32);
    const Tensor distortion =
        reshape(draw(Tensor(1), options_.scale.lower, options_.scale.upper), {});
    const Tensor alpha = maximum(height, width) * distortion * 0.1;
    const Tensor sigma = maximum(minimum(height, width) * distortion * 0.05, 1e-6);
    const Tensor x =
        reshape(cast(range(sizes[2]), float32), {1, 1, -1}) + alpha * noise(sizes, sigma);
    const Tensor y =
        reshape(cast(range(sizes[1]), float32), {1, -1, 1}) + alpha * noise(sizes, sigma);
    const Tensor bent = where(chosen, sampled(images, y, x), images);
    return clip_by_value(bent, options_.min_value, options_.max_value);
  }

 private:
  // Normal numbers [batch, height, width] of this deviation, blurred by it.
  Tensor noise(const Tensor& sizes, const Tensor& sigma) {
    const Tensor drawn = tandem::random::stateless_normal(
        IntList(stack({sizes[0], sizes[1], sizes[2]})), IntList(seeds_.next()));
    const Tensor half = cast(sigma, int32) * 3;
    const Tensor at = cast(range(-half, half + 1, Tensor(1)), float32);
    const Tensor weights = exp(square(at / sigma) * -0.5);
    const Tensor kernel = weights / reduce_sum(weights);
    const Tensor image = expand_dims(drawn * sigma, -1);
    const Tensor across = nn::conv2d(image, reshape(kernel, {1, -1, 1, 1}), 1, "SAME");
    return squeeze(nn::conv2d(across, reshape(kernel, {-1, 1, 1, 1}), 1, "SAME"), {-1});
  }

  // The images at rows y and columns x, [batch, height, width].
  Tensor sampled(const Tensor& images, const Tensor& y, const Tensor& x) const {
    const auto rounded = [](const Tensor& t) { return cast(floor(t + 0.5), int32); };
    if (options_.interpolation == "nearest") return pixels(images, rounded(y), rounded(x));
    const Tensor y0 = floor(y), x0 = floor(x);
    const Tensor down = cast(expand_dims(y - y0, -1), images.dtype());
    const Tensor right = cast(expand_dims(x - x0, -1), images.dtype());
    const Tensor top = cast(y0, int32), left = cast(x0, int32);
    const auto between = [&](const Tensor& row) {
      return pixels(images, row, left) * (1.0 - right) + pixels(images, row, left + 1) * right;
    };
    return between(top) * (1.0 - down) + between(top + 1) * down;
  }
  Tensor pixels(const Tensor& images, const Tensor& row, const Tensor& column) const {
    const Tensor sizes = shape(images);
    const std::string& mode = options_.fill_mode;
    const Tensor y = inside(row, sizes[1], mode), x = inside(column, sizes[2], mode);
    const Tensor safe_y = inside(y, sizes[1], "nearest"), safe_x = inside(x, sizes[2], "nearest");
    const Tensor image = reshape(range(sizes[0]), {-1, 1, 1});
    const Tensor all = reshape(images, IntList(stack({Tensor(-1), sizes[3]})));
    const Tensor found = gather(all, (image * sizes[1] + safe_y) * sizes[2] + safe_x);
    if (mode != "constant") return found;
    const Tensor known = logical_and(equal(y, safe_y), equal(x, safe_x));
    const Tensor fill = zeros_like(found) + options_.fill_value;
    return where(expand_dims(known, -1), found, fill);
  }

  ElasticTransformOptions options_;
};

}  // namespace

RandomElasticTransform::RandomElasticTransform(const ElasticTransformOptions& options)
    : Layer(make_layer<ElasticImpl>(options)) {}

}  // namespace tandem::keras
