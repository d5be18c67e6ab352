#include "tandem/ops/image_adjust_ops.h"

#include <cmath>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/image_codec_ops.h"
#include "tandem/ops/image_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::image {
namespace {

// The largest value of an integer dtype is 2^bits - 1.
int value_bits(DType dtype) {
  return 8 * static_cast<int>(dtype_size(dtype)) - (is_signed_integer(dtype) ? 1 : 0);
}

double largest(DType dtype) {
  return dtype == DType::kUint64 ? 18446744073709551615.0
                                 : static_cast<double>((std::uint64_t{1} << value_bits(dtype)) - 1);
}

Tensor between_integers(Tensor image, DType dtype, bool saturate) {
  const int in = value_bits(image.dtype()), out = value_bits(dtype);
  const auto convert = [&](Tensor x) {
    return saturate ? saturate_cast(std::move(x), dtype) : cast(std::move(x), dtype);
  };
  if (in > out) return convert(floordiv(std::move(image), std::int64_t{1} << (in - out)));
  const Tensor wide = convert(std::move(image));
  return in == out ? wide : wide * (std::int64_t{1} << (out - in));
}

void require_rank_3(const Tensor& image, std::string_view function) {
  if (image.rank() >= 0 && image.rank() < 3) {
    throw InvalidArgumentError(cat("td::image::", function, ": the image (shape ",
                                   image.partial_shape(), ") must be at least three-dimensional."));
  }
}

}  // namespace

Tensor convert_image_dtype(Tensor image, DType dtype, bool saturate) {
  const DType from = image.dtype();
  for (const DType t : {from, dtype}) {
    if (!is_floating(t) && !is_integer(t)) {
      throw InvalidArgumentError(cat("td::image::convert_image_dtype: from ", from, " to ", dtype,
                                     ": dtypes must be either floating point or integer."));
    }
  }
  if (from == dtype) return image;
  if (is_floating(from) && is_floating(dtype)) return cast(std::move(image), dtype);
  if (is_floating(from)) {
    // 16 bits cannot hold every scale.
    if (dtype_size(from) == 2 && value_bits(dtype) > 15) image = cast(std::move(image), float32);
    const Tensor scaled = std::move(image) * (largest(dtype) + 0.5);
    return saturate ? saturate_cast(scaled, dtype) : cast(scaled, dtype);
  }
  if (is_floating(dtype)) return cast(std::move(image), dtype) * (1.0 / largest(from));
  return between_integers(std::move(image), dtype, saturate);
}

Tensor adjust_brightness(Tensor image, Tensor delta) {
  const DType dtype = image.dtype();
  Tensor floats = in_float(std::move(image));
  delta = cast(std::move(delta), floats.dtype());
  return convert_image_dtype(std::move(floats) + std::move(delta), dtype, true);
}

Tensor adjust_gamma(Tensor image, Tensor gamma, Tensor gain) {
  const DType dtype = image.dtype();
  if (const Array* known = internal::known_value(gamma);
      known != nullptr && known->num_elements() == 1 && known->dtype() == DType::kFloat &&
      !(known->data<float>()[0] >= 0)) {
    throw InvalidArgumentError(
        cat("td::image::adjust_gamma: Gamma should be a non-negative real "
            "number, got ",
            known->data<float>()[0], "."));
  }
  Tensor floats = in_float(std::move(image));
  gamma = cast(std::move(gamma), floats.dtype());
  gain = cast(std::move(gain), floats.dtype());
  return convert_image_dtype(std::move(gain) * pow(std::move(floats), std::move(gamma)), dtype,
                             true);
}

Tensor adjust_jpeg_quality(Tensor image, Tensor jpeg_quality, StringView dct_method) {
  const DType dtype = image.dtype();
  const std::int64_t channels = image.rank() == 3 ? image.dim(2) : -1;
  const Tensor bytes = encode_jpeg_variable_quality(
      convert_image_dtype(std::move(image), DType::kUint8, true), std::move(jpeg_quality));
  return convert_image_dtype(decode_jpeg(bytes, {.channels = channels > 0 ? channels : 0,
                                                 .dct_method = std::string(dct_method)}),
                             dtype, true);
}

Tensor per_image_standardization(Tensor image) {
  require_rank_3(image, "per_image_standardization");
  const Tensor floats = cast(std::move(image), DType::kFloat);
  const Tensor sizes = strided_slice(shape(floats), {-3}, {0}, {1}, {.end_mask = 1});
  const Tensor least = math::rsqrt(cast(reduce_prod(sizes), DType::kFloat));
  const Axes axes({-1, -2, -3});
  const Tensor deviation = maximum(math::reduce_std(floats, axes, true), least);
  return (floats - reduce_mean(floats, axes, true)) / deviation;
}

Tensor rgb_to_grayscale(Tensor images) {
  const DType dtype = images.dtype();
  const Tensor weights = Tensor{0.2989f, 0.587f, 0.114f};
  const Tensor grey =
      tensordot(convert_image_dtype(std::move(images), DType::kFloat), weights, {-1}, {-1});
  return convert_image_dtype(expand_dims(grey, -1), dtype);
}

Tensor grayscale_to_rgb(Tensor images) {
  const int rank = images.rank();
  if (rank == 0 || (rank > 0 && images.dim(rank - 1) > 1)) {
    throw InvalidArgumentError(
        cat("td::image::grayscale_to_rgb: the last dimension of a grayscale "
            "image should be size 1, got shape ",
            images.partial_shape(), "."));
  }
  if (rank < 0) throw InvalidArgumentError("td::image::grayscale_to_rgb: the rank is not known.");
  std::vector<std::int64_t> multiples(static_cast<std::size_t>(rank), 1);
  multiples.back() = 3;
  return tile(std::move(images), multiples);
}

}  // namespace tandem::image
