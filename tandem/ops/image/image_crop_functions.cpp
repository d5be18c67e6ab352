// Windows of images, and images in larger ones.

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/image_stateless_ops.h"
#include "tandem/ops/image_transform_ops.h"
#include "tandem/ops/internal/image_shape.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"

namespace tandem::image {
namespace {

// Height and width as far as they are known: -1 where not.
struct Sides {
  std::int64_t height, width;
  bool known() const { return height >= 0 && width >= 0; }
};
Sides sides_of(const Tensor& image) {
  const int rank = image.rank();
  return {image.dim(rank - 3), image.dim(rank - 2)};
}

// Height and width as int32 [2], computed when it runs.
Tensor computed_sides(const Tensor& image) { return slice(shape(image), {image.rank() - 3}, {2}); }

Tensor window(Tensor image, std::vector<std::int64_t> begin, std::vector<std::int64_t> size) {
  if (image.rank() == 4) {
    begin.insert(begin.begin(), 0);
    size.insert(size.begin(), -1);
  }
  begin.push_back(0);
  size.push_back(-1);
  return slice(std::move(image), begin, size);
}

Tensor computed_window(Tensor image, const Tensor& begin, const Tensor& size) {
  if (image.rank() == 4) {
    return slice(std::move(image), concat({Tensor{0}, begin, Tensor{0}}, 0),
                 concat({Tensor{-1}, size, Tensor{-1}}, 0));
  }
  return slice(std::move(image), concat({begin, Tensor{0}}, 0), concat({size, Tensor{-1}}, 0));
}

// `before` and `after`: int32 [2].
Tensor with_margins(Tensor image, const Tensor& before, const Tensor& after) {
  const Tensor none_added = Tensor{{0, 0}};
  const Tensor sides = stack({before, after}, 1);
  return image.rank() == 4 ? pad(std::move(image), concat({none_added, sides, none_added}, 0))
                           : pad(std::move(image), concat({sides, none_added}, 0));
}

Tensor pair(std::int64_t height, std::int64_t width) {
  return internal::int_vector({height, width}, DType::kInt32);
}

[[noreturn]] void fail(std::string_view function, const std::string& why, const Tensor& image) {
  throw InvalidArgumentError(
      cat("td::image::", function, ": ", why, " (image of shape ", image.partial_shape(), ")."));
}

void require_not_negative(std::string_view function, std::int64_t offset_height,
                          std::int64_t offset_width, const Tensor& image) {
  if (offset_height < 0 || offset_width < 0) {
    fail(function,
         cat("offset_height and offset_width must be >= 0, got ", offset_height, " and ",
             offset_width),
         image);
  }
}

void require_positive(std::string_view function, std::int64_t height, std::int64_t width,
                      const Tensor& image) {
  if (height <= 0 || width <= 0) {
    fail(function, cat("target_height and target_width must be > 0, got ", height, " and ", width),
         image);
  }
}

// `draw` makes numbers from 0 to 2^31 - 2 of a shape.
template <class Draw>
Tensor crop_at_random(Tensor value, const IntList& size, std::string_view function, Draw draw) {
  const Tensor wanted = cast(size.tensor(DType::kInt32), DType::kInt32);
  const auto known = size.known();
  const auto now = internal::known_dims(value);
  if (known && now) {
    bool fits = known->size() == now->size();
    for (std::size_t i = 0; fits && i < now->size(); ++i) {
      fits = (*known)[i] >= 0 && (*known)[i] <= (*now)[i];
    }
    if (!fits) {
      fail(function,
           cat("needs a size of as many numbers as the value has axes, none above "
               "its dimensions, got ",
               PartialShape(*known)),
           value);
    }
  }
  const Tensor places = shape(value) - wanted + 1;
  const Tensor draws = draw(IntList(shape(places)));
  return slice(std::move(value), draws % places, wanted);
}

constexpr double kMax = 2147483647;

}  // namespace

Tensor crop_to_bounding_box(Tensor image, std::int64_t offset_height, std::int64_t offset_width,
                            std::int64_t target_height, std::int64_t target_width) {
  constexpr std::string_view kName = "crop_to_bounding_box";
  internal::is_batch(image, kName);
  require_not_negative(kName, offset_height, offset_width, image);
  require_positive(kName, target_height, target_width, image);
  const Sides now = sides_of(image);
  if ((now.height >= 0 && target_height > now.height - offset_height) ||
      (now.width >= 0 && target_width > now.width - offset_width)) {
    fail(kName,
         cat("height and width must be >= target + offset, got targets ", target_height, " and ",
             target_width, " at ", offset_height, " and ", offset_width),
         image);
  }
  return window(std::move(image), {offset_height, offset_width}, {target_height, target_width});
}

Tensor pad_to_bounding_box(Tensor image, std::int64_t offset_height, std::int64_t offset_width,
                           std::int64_t target_height, std::int64_t target_width) {
  constexpr std::string_view kName = "pad_to_bounding_box";
  internal::is_batch(image, kName);
  require_not_negative(kName, offset_height, offset_width, image);
  const Sides now = sides_of(image);
  if ((now.height >= 0 && now.height > target_height - offset_height) ||
      (now.width >= 0 && now.width > target_width - offset_width)) {
    fail(kName,
         cat("height and width must be <= target - offset, got targets ", target_height, " and ",
             target_width, " with offsets ", offset_height, " and ", offset_width),
         image);
  }
  const Tensor before = pair(offset_height, offset_width);
  const Tensor after = pair(target_height, target_width) - before - computed_sides(image);
  return with_margins(std::move(image), before, after);
}

Tensor resize_with_crop_or_pad(Tensor image, std::int64_t target_height,
                               std::int64_t target_width) {
  constexpr std::string_view kName = "resize_with_crop_or_pad";
  internal::is_batch(image, kName);
  require_positive(kName, target_height, target_width, image);
  if (const Sides now = sides_of(image); now.known()) {
    const auto part = [](std::int64_t more) { return std::max<std::int64_t>(more / 2, 0); };
    Tensor cropped =
        window(std::move(image), {part(now.height - target_height), part(now.width - target_width)},
               {std::min(now.height, target_height), std::min(now.width, target_width)});
    if (now.height >= target_height && now.width >= target_width) return cropped;
    return pad_to_bounding_box(std::move(cropped), part(target_height - now.height),
                               part(target_width - now.width), target_height, target_width);
  }
  const Tensor now = computed_sides(image);
  const Tensor target = pair(target_height, target_width);
  const Tensor left = minimum(now, target);
  const Tensor before = maximum(floordiv(target - now, 2), 0);
  return with_margins(
      computed_window(std::move(image), maximum(floordiv(now - target, 2), 0), left), before,
      target - left - before);
}

Tensor central_crop(Tensor image, double central_fraction) {
  constexpr std::string_view kName = "central_crop";
  internal::is_batch(image, kName);
  if (!(central_fraction > 0 && central_fraction <= 1)) {
    fail(kName, cat("central_fraction must be within (0, 1], got ", central_fraction), image);
  }
  if (central_fraction == 1) return image;
  if (const Sides now = sides_of(image); now.known()) {
    const auto start = [&](std::int64_t side) {
      const auto size = static_cast<double>(side);
      return static_cast<std::int64_t>((size - size * central_fraction) / 2);
    };
    const std::int64_t y = start(now.height), x = start(now.width);
    return window(std::move(image), {y, x}, {now.height - 2 * y, now.width - 2 * x});
  }
  const Tensor now = computed_sides(image);
  const Tensor size = cast(now, DType::kDouble);
  const Tensor begin = cast((size - size * central_fraction) / 2.0, DType::kInt32);
  return computed_window(std::move(image), begin, now - begin * 2);
}

Tensor random_crop(Tensor value, const IntList& size, std::optional<std::int64_t> seed) {
  return crop_at_random(std::move(value), size, "random_crop", [&](const IntList& shape) {
    return random::uniform(shape,
                           {.minval = 0, .maxval = kMax, .dtype = DType::kInt32, .seed = seed});
  });
}

Tensor stateless_random_crop(Tensor value, const IntList& size, const IntList& seed) {
  return crop_at_random(std::move(value), size, "stateless_random_crop", [&](const IntList& shape) {
    return random::stateless_uniform(shape, seed,
                                     {.minval = 0, .maxval = kMax, .dtype = DType::kInt32});
  });
}

}  // namespace tandem::image
