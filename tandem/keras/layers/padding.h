#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"

namespace tandem::keras {

/// How much before and after each spatial axis: one number for all, a number for each axis (the
/// same before and after), or {before, after} for each axis.
///
///     ZeroPadding2D(1);   ZeroPadding2D({1, 2});   ZeroPadding2D({{1, 0}, {2, 2}});
class TANDEM_EXPORT Margins {
 public:
  using Pair = std::pair<std::int64_t, std::int64_t>;
  Margins(int all) : Margins(std::int64_t{all}) {}  // NOLINT: `ZeroPadding2D(1)`
  Margins(std::int64_t all) : pairs_{{all, all}} {}
  Margins(std::initializer_list<std::int64_t> sizes) {
    for (const std::int64_t size : sizes) pairs_.emplace_back(size, size);
  }
  Margins(std::initializer_list<Pair> pairs) : pairs_(pairs) {}
  Margins(std::vector<Pair> pairs) : pairs_(std::move(pairs)) {}
  /// A pair for each of so many axes; throws InvalidArgumentError if there are not as many.
  std::vector<Pair> resolve(const std::string& layer, int axes) const;
  /// As they were given.
  const std::vector<Pair>& pairs() const { return pairs_; }

 private:
  std::vector<Pair> pairs_;
};

struct MarginOptions {
  String data_format = "channels_last";  ///< or "channels_first"
  String name = {};
  DTypePolicy dtype = {};
};

/// Zeros before and after the spatial axes of [batch, steps, channels], [batch, height, width,
/// channels] or [batch, depth, height, width, channels].
class TANDEM_EXPORT ZeroPadding1D : public Layer {
 public:
  explicit ZeroPadding1D(std::int64_t padding = 1, const MarginOptions& options = {})
      : ZeroPadding1D({padding, padding}, options) {}
  /// {before, after}
  explicit ZeroPadding1D(std::pair<std::int64_t, std::int64_t> padding,
                         const MarginOptions& options = {});
};
class TANDEM_EXPORT ZeroPadding2D : public Layer {
 public:
  explicit ZeroPadding2D(const Margins& padding = 1, const MarginOptions& options = {});
};
class TANDEM_EXPORT ZeroPadding3D : public Layer {
 public:
  explicit ZeroPadding3D(const Margins& padding = 1, const MarginOptions& options = {});
};

/// Cuts off the margins of the spatial axes.
class TANDEM_EXPORT Cropping1D : public Layer {
 public:
  explicit Cropping1D(std::int64_t cropping = 1, const MarginOptions& options = {})
      : Cropping1D({cropping, cropping}, options) {}
  /// {before, after}
  explicit Cropping1D(std::pair<std::int64_t, std::int64_t> cropping,
                      const MarginOptions& options = {});
};
class TANDEM_EXPORT Cropping2D : public Layer {
 public:
  explicit Cropping2D(const Margins& cropping = 0, const MarginOptions& options = {});
};
class TANDEM_EXPORT Cropping3D : public Layer {
 public:
  explicit Cropping3D(const Margins& cropping = 1, const MarginOptions& options = {});
};

}  // namespace tandem::keras
