// A random box of an image that covers enough of given ones.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/random/distributions.h"
#include "tandem/kernels/cpu/random/random.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

struct Box {
  int left = 0, top = 0, right = 0, bottom = 0;
  float area() const {
    return static_cast<float>(std::int64_t{right - left} * std::int64_t{bottom - top});
  }
  Box cut(const Box& other) const {
    const Box both{std::max(left, other.left), std::max(top, other.top),
                   std::min(right, other.right), std::min(bottom, other.bottom)};
    return both.left > both.right || both.top > both.bottom ? Box{} : both;
  }
};

// Below n, each number equally often.
std::uint32_t below(PhiloxNumbers& next, int limit) {
  const auto n = static_cast<std::uint32_t>(limit);
  if ((n & (n - 1)) == 0) return next() & (n - 1);
  const std::uint32_t first = ~std::uint32_t{0} % n + 1;
  std::uint32_t x = next();
  while (x < first) x = next();
  return x % n;
}

int rounded(float x) { return static_cast<int>(std::lrint(x)); }

struct Limits {
  float least_area, most_area;  // as parts of the image's
};

// A box of width : height = aspect at a random place; false if none fits.
bool draw_box(int width, int height, const Limits& limits, float aspect, PhiloxNumbers& next,
              Box& box) {
  if (limits.most_area <= 0 || aspect <= 0 || width <= 0 || height <= 0 ||
      limits.least_area > limits.most_area) {
    return false;
  }
  const float least = limits.least_area * static_cast<float>(width) * static_cast<float>(height);
  const float most = limits.most_area * static_cast<float>(width) * static_cast<float>(height);
  int h = rounded(std::sqrt(least / aspect));
  int most_h = rounded(std::sqrt(most / aspect));
  if (rounded(static_cast<float>(most_h) * aspect) > width) {
    most_h = static_cast<int>((static_cast<double>(width) + 0.5 - 0.0000001) /
                              static_cast<double>(aspect));
  }
  most_h = std::min(most_h, height);
  h = std::min(h, most_h);
  if (h < most_h) h += static_cast<int>(below(next, most_h - h + 1));
  int w = rounded(static_cast<float>(h) * aspect);
  const auto area = [&] { return static_cast<float>(std::int64_t{w} * h); };
  // Rounding may have gone a little too far.
  if (area() < least) w = rounded(static_cast<float>(++h) * aspect);
  if (area() > most) w = rounded(static_cast<float>(--h) * aspect);
  if (area() < least || area() > most || w > width || h > height || w <= 0 || h <= 0) return false;
  const int y = h < height ? static_cast<int>(below(next, height - h)) : 0;
  const int x = w < width ? static_cast<int>(below(next, width - w)) : 0;
  box = {x, y, x + w, y + h};
  return true;
}

bool covers(const Box& box, float share, const std::vector<Box>& objects) {
  if (box.area() < 1) return false;
  return std::any_of(objects.begin(), objects.end(), [&](const Box& object) {
    return object.area() >= 1 && box.cut(object).area() / object.area() >= share;
  });
}

struct Settings {
  Limits area;
  float least_aspect, most_aspect;
  std::int64_t attempts;
};

Settings settings_of(const KernelContext& c) {
  const auto& aspect = c.attr<std::vector<float>>("aspect_ratio_range");
  const auto& area = c.attr<std::vector<float>>("area_range");
  if (aspect.size() != 2 || !(aspect[0] > 0 && aspect[1] > 0)) {
    throw InvalidArgumentError("aspect_ratio_range must hold two positive numbers.");
  }
  if (area.size() != 2 || !(area[0] > 0 && area[1] > 0 && area[0] <= 1 && area[1] <= 1)) {
    throw InvalidArgumentError("area_range must hold two numbers from (0, 1].");
  }
  const auto attempts = c.attr<std::int64_t>("max_attempts");
  if (attempts <= 0) throw InvalidArgumentError(cat("max_attempts must be positive: ", attempts));
  return {{area[0], area[1]}, aspect[0], aspect[1], attempts};
}

int side(std::int64_t size) {
  if (size < 0 || size >= std::numeric_limits<std::int32_t>::max()) {
    throw InvalidArgumentError(cat("image sides cannot be negative or >= int32 max: ", size));
  }
  return static_cast<int>(size);
}

std::vector<Box> objects_of(const KernelContext& c, int width, int height) {
  const Array& boxes = c.input(1);
  if (boxes.rank() != 3 || boxes.shape()[2] != 4) {
    throw InvalidArgumentError(
        cat("bounding boxes must have shape [batch, num_boxes, 4], got ", boxes.shape()));
  }
  std::vector<Box> objects;
  const auto* from = boxes.data<float>();
  for (std::int64_t i = 0; i < boxes.num_elements(); i += 4) {
    for (int k = 0; k < 4; ++k) {
      if (!(from[i + k] >= 0 && from[i + k] <= 1)) {
        throw InvalidArgumentError(
            cat("All bounding box coordinates must be in [0.0, 1.0]: ", from[i + k]));
      }
    }
    const auto at = [](float part, int whole) {
      return static_cast<int>(part * static_cast<float>(whole));
    };
    objects.push_back({at(from[i + 1], width), at(from[i], height), at(from[i + 3], width),
                       at(from[i + 2], height)});
  }
  if (objects.empty()) {
    if (!c.attr<bool>("use_image_if_no_bounding_boxes")) {
      throw InvalidArgumentError(
          "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes "
          "if you wish to not provide any bounding boxes.");
    }
    objects.push_back({0, 0, width, height});
  }
  return objects;
}

template <class Stream>
void sample(KernelContext& c, float share, Stream stream) {
  const Settings settings = settings_of(c);
  const Array& size = c.input(0);
  if (!(size.shape() == Shape{3})) {
    throw InvalidArgumentError(
        cat("image_size must contain 3 elements, but has shape ", size.shape()));
  }
  int height = 0, width = 0;
  with_integer(size.dtype(), [&]<class T>() {
    height = side(static_cast<std::int64_t>(size.data<T>()[0]));
    width = side(static_cast<std::int64_t>(size.data<T>()[1]));
  });
  const std::vector<Box> objects = objects_of(c, width, height);
  PhiloxNumbers next(stream(settings.attempts));
  Box box{0, 0, width, height};
  for (std::int64_t i = 0; i < settings.attempts; ++i) {
    const float aspect =
        unit_float(next()) * (settings.most_aspect - settings.least_aspect) + settings.least_aspect;
    Box drawn;
    if (draw_box(width, height, settings.area, aspect, next, drawn) &&
        covers(drawn, share, objects)) {
      box = drawn;
      break;
    }
    if (c.cancellation() != nullptr && i % 65536 == 0) c.cancellation()->check();
  }
  Array& begin = c.allocate_output(0, Shape{3});
  Array& extent = c.allocate_output(1, Shape{3});
  with_integer(size.dtype(), [&]<class T>() {
    const int from[] = {box.top, box.left, 0};
    const int length[] = {box.bottom - box.top, box.right - box.left, -1};
    for (int k = 0; k < 3; ++k) {
      begin.data<T>()[k] = static_cast<T>(from[k]);
      extent.data<T>()[k] = static_cast<T>(length[k]);
    }
  });
  auto* parts = c.allocate_output(2, Shape{1, 1, 4}).data<float>();
  parts[0] = static_cast<float>(box.top) / static_cast<float>(height);
  parts[1] = static_cast<float>(box.left) / static_cast<float>(width);
  parts[2] = static_cast<float>(box.bottom) / static_cast<float>(height);
  parts[3] = static_cast<float>(box.right) / static_cast<float>(width);
}

float share_of(float share) {
  if (!(share >= 0)) {
    throw InvalidArgumentError(cat("Min object covered must be non-negative: ", share));
  }
  return share;
}

float share_input(const KernelContext& c) {
  if (c.input(2).rank() != 0) {
    throw InvalidArgumentError(
        cat("min_object_covered must be 0-D, got shape ", c.input(2).shape()));
  }
  return share_of(*c.input(2).data<float>());
}

// Four numbers an attempt: a block.
void stateful(KernelContext& c) {
  sample(c, share_of(c.attr<float>("min_object_covered")), [&](std::int64_t attempts) {
    return reserve_blocks(c, static_cast<std::uint64_t>(attempts));
  });
}
void stateful_v2(KernelContext& c) {
  sample(c, share_input(c), [&](std::int64_t attempts) {
    return reserve_blocks(c, static_cast<std::uint64_t>(attempts));
  });
}
void stateless(KernelContext& c) {
  sample(c, share_input(c), [&](std::int64_t) { return seed_input(c, 3); });
}

const KernelRegistration kKernels[] = {
    KernelRegistration({.op = "SampleDistortedBoundingBox", .run = stateful}),
    KernelRegistration({.op = "SampleDistortedBoundingBoxV2", .run = stateful_v2}),
    KernelRegistration({.op = "StatelessSampleDistortedBoundingBox", .run = stateless}),
};

}  // namespace
}  // namespace tandem::cpu
