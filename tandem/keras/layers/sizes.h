#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "tandem/ops/conv_ops.h"

namespace tandem::nn {

inline bool operator==(const Size2D& a, const Size2D& b) {
  return a.height == b.height && a.width == b.width;
}

}  // namespace tandem::nn

namespace tandem::keras {

/// Height and width of a window: one number for both, or {height, width}.
using Size2D = nn::Size2D;

/// Depth, height and width: one number for all, or {depth, height, width}.
struct Size3D {
  Size3D(std::int64_t all)
      : depth(all), height(all), width(all) {}  // NOLINT: `strides = 2` is how users write it
  Size3D(std::int64_t d, std::int64_t h, std::int64_t w) : depth(d), height(h), width(w) {}
  std::int64_t depth;
  std::int64_t height;
  std::int64_t width;
  bool operator==(const Size3D&) const = default;
};

/// One axis or several.
class LayerAxes {
 public:
  LayerAxes(int axis) : axes_{axis} {}
  LayerAxes(std::initializer_list<int> axes) : axes_(axes) {}
  LayerAxes(std::vector<int> axes) : axes_(std::move(axes)) {}
  const std::vector<int>& list() const { return axes_; }
  bool operator==(const LayerAxes& other) const = default;

 private:
  std::vector<int> axes_;
};

}  // namespace tandem::keras
