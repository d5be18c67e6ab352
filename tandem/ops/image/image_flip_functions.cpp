// Flips and turns.

#include <string_view>
#include <utility>

#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/image_stateless_ops.h"
#include "tandem/ops/image_transform_ops.h"
#include "tandem/ops/internal/image_shape.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"

namespace tandem::image {
namespace {

enum class Way { kLeftRight, kUpDown };

Tensor flip(Tensor image, Way way, std::string_view function) {
  const std::int64_t rows = internal::is_batch(image, function) ? 1 : 0;
  return reverse(std::move(image), {way == Way::kUpDown ? rows : rows + 1});
}

Tensor uniform(const IntList& shape, std::optional<std::int64_t> seed) {
  return random::uniform(shape, {.seed = seed});
}
Tensor uniform(const IntList& shape, const IntList& seed) {
  return random::stateless_uniform(shape, seed);
}

// The draws are TensorFlow's: below a half flips an image alone, above it one of a batch.
template <class Seed>
Tensor random_flip(Tensor image, Way way, const Seed& seed, std::string_view function) {
  if (!internal::is_batch(image, function)) {
    const Tensor draw = uniform({}, seed);
    return cond(
        less(draw, 0.5), [&] { return flip(image, way, function); }, [&] { return image; });
  }
  const Tensor draws = uniform(slice(shape(image), {0}, {1}), seed);
  const Tensor flipped = flip(image, way, function);
  return where(reshape(greater(draws, 0.5), {-1, 1, 1, 1}), flipped, image);
}

}  // namespace

Tensor flip_left_right(Tensor image) {
  return flip(std::move(image), Way::kLeftRight, "flip_left_right");
}
Tensor flip_up_down(Tensor image) { return flip(std::move(image), Way::kUpDown, "flip_up_down"); }

Tensor random_flip_left_right(Tensor image, std::optional<std::int64_t> seed) {
  return random_flip(std::move(image), Way::kLeftRight, seed, "random_flip_left_right");
}
Tensor random_flip_up_down(Tensor image, std::optional<std::int64_t> seed) {
  return random_flip(std::move(image), Way::kUpDown, seed, "random_flip_up_down");
}
Tensor stateless_random_flip_left_right(Tensor image, const IntList& seed) {
  return random_flip(std::move(image), Way::kLeftRight, seed, "stateless_random_flip_left_right");
}
Tensor stateless_random_flip_up_down(Tensor image, const IntList& seed) {
  return random_flip(std::move(image), Way::kUpDown, seed, "stateless_random_flip_up_down");
}

Tensor transpose(Tensor image) {
  if (internal::is_batch(image, "transpose"))
    return tandem::transpose(std::move(image), {0, 2, 1, 3});
  return tandem::transpose(std::move(image), {1, 0, 2});
}

Tensor rot90(Tensor image, std::int64_t k) {
  const std::int64_t rows = internal::is_batch(image, "rot90") ? 1 : 0;
  switch ((k % 4 + 4) % 4) {
    case 1: return image::transpose(reverse(std::move(image), {rows + 1}));
    case 2: return reverse(std::move(image), {rows, rows + 1});
    case 3: return reverse(image::transpose(std::move(image)), {rows + 1});
    default: return image;
  }
}

}  // namespace tandem::image
