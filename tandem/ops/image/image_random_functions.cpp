// Random amounts of the changes in image_adjust_ops.h, drawn with and without a state.

#include <string_view>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/image_adjust_ops.h"
#include "tandem/ops/image_ops.h"
#include "tandem/ops/image_stateless_ops.h"
#include "tandem/ops/random_ops.h"

namespace tandem::image {
namespace {

// What is drawn from: a state, or numbers that say all.
Tensor draw(double low, double high, Seed seed, DType dtype = DType::kFloat) {
  return random::uniform({}, {.minval = low, .maxval = high, .dtype = dtype, .seed = seed});
}
Tensor draw(double low, double high, const IntList& seed, DType dtype = DType::kFloat) {
  return random::stateless_uniform({}, seed, {.minval = low, .maxval = high, .dtype = dtype});
}

template <class From>
Tensor random_delta(std::string_view function, float max_delta, const From& seed) {
  if (!(max_delta >= 0)) {
    throw InvalidArgumentError(
        cat("td::image::", function, ": max_delta must be non-negative, got ", max_delta, "."));
  }
  return draw(-max_delta, max_delta, seed);
}

template <class From>
Tensor random_turn(std::string_view function, float max_delta, const From& seed) {
  if (max_delta > 0.5f) {
    throw InvalidArgumentError(
        cat("td::image::", function, ": max_delta must be <= 0.5, got ", max_delta, "."));
  }
  return random_delta(function, max_delta, seed);
}

template <class From>
Tensor random_factor(std::string_view function, float lower, float upper, const From& seed) {
  if (!(upper > lower) || lower < 0) {
    throw InvalidArgumentError(cat("td::image::", function,
                                   ": needs 0 <= lower < upper, got lower ", lower, " and upper ",
                                   upper, "."));
  }
  return draw(lower, upper, seed);
}

template <class From>
Tensor random_quality(std::string_view function, int least, int most, const From& seed) {
  if (least < 0 || most > 100 || least >= most) {
    throw InvalidArgumentError(cat("td::image::", function,
                                   ": needs 0 <= min_jpeg_quality < max_jpeg_quality <= 100, got ",
                                   least, " and ", most, "."));
  }
  return draw(least, most, seed, DType::kInt32);
}

}  // namespace

Tensor random_brightness(Tensor image, float max_delta, Seed seed) {
  return adjust_brightness(std::move(image), random_delta("random_brightness", max_delta, seed));
}
Tensor stateless_random_brightness(Tensor image, float max_delta, const IntList& seed) {
  return adjust_brightness(std::move(image),
                           random_delta("stateless_random_brightness", max_delta, seed));
}

Tensor random_contrast(Tensor image, float lower, float upper, Seed seed) {
  return adjust_contrast(std::move(image), random_factor("random_contrast", lower, upper, seed));
}
Tensor stateless_random_contrast(Tensor image, float lower, float upper, const IntList& seed) {
  return adjust_contrast(std::move(image),
                         random_factor("stateless_random_contrast", lower, upper, seed));
}

Tensor random_hue(Tensor image, float max_delta, Seed seed) {
  return adjust_hue(std::move(image), random_turn("random_hue", max_delta, seed));
}
Tensor stateless_random_hue(Tensor image, float max_delta, const IntList& seed) {
  return adjust_hue(std::move(image), random_turn("stateless_random_hue", max_delta, seed));
}

Tensor random_saturation(Tensor image, float lower, float upper, Seed seed) {
  return adjust_saturation(std::move(image),
                           random_factor("random_saturation", lower, upper, seed));
}
Tensor stateless_random_saturation(Tensor image, float lower, float upper, const IntList& seed) {
  return adjust_saturation(std::move(image),
                           random_factor("stateless_random_saturation", lower, upper, seed));
}

Tensor random_jpeg_quality(Tensor image, int min_jpeg_quality, int max_jpeg_quality, Seed seed) {
  return adjust_jpeg_quality(
      std::move(image),
      random_quality("random_jpeg_quality", min_jpeg_quality, max_jpeg_quality, seed));
}
Tensor stateless_random_jpeg_quality(Tensor image, int min_jpeg_quality, int max_jpeg_quality,
                                     const IntList& seed) {
  return adjust_jpeg_quality(
      std::move(image),
      random_quality("stateless_random_jpeg_quality", min_jpeg_quality, max_jpeg_quality, seed));
}

}  // namespace tandem::image
