#include "tandem/keras/layers/clahe.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

constexpr std::int64_t kLevels = 256;

// One axis of the image: `grid` tiles of `tile` pixels, the last of which may end behind it.
struct TileAxis {
  TileAxis(std::int64_t length, std::int64_t tiles)
      : size(length), grid(tiles), tile((length + tiles - 1) / tiles) {}
  std::int64_t padded() const { return tile * grid; }
  std::int64_t size, grid, tile;
};

// Between which two tiles each pixel of an axis is, of the tiles with a copy of the first and the
// last around them, and how near to the second.
struct Neighbours {
  explicit Neighbours(const TileAxis& axis) {
    const auto tile = static_cast<double>(axis.tile);
    const Tensor at = (cast(range(axis.padded()), float32) - tile / 2) / tile + 1.0;
    const Tensor below = floor(at);
    const auto last = static_cast<double>(axis.grid + 1);
    first = cast(clip_by_value(below, 0.0, last), int64);
    second = cast(clip_by_value(below + 1.0, 0.0, last), int64);
    weight = at - below;
  }
  Tensor first, second, weight;
};

class ClaheImpl final : public LayerImpl {
 public:
  explicit ClaheImpl(const ClaheOptions& o)
      : LayerImpl("ContrastLimitedAdaptiveHistogramEqualization", {.name = o.name}), options_(o) {
    const char* who = "ContrastLimitedAdaptiveHistogramEqualization";
    internal::require_positive(who, "tile_grid_size", o.tile_grid_size.height);
    internal::require_positive(who, "tile_grid_size", o.tile_grid_size.width);
    if (!(o.min_value < o.max_value)) {
      throw InvalidArgumentError(cat(who, ": min_value must be less than max_value, got ",
                                     o.min_value, " and ", o.max_value, "."));
    }
    without_weights();
    require_min_rank(3);
  }

  Tensor call(const Tensor& given, bool) override {
    const Tensor x = cast(given, float32);
    const double factor = (options_.max_value - options_.min_value) / 255;
    const Tensor bytes = (x - options_.min_value) / factor;
    const Tensor y =
        x.rank() == 3 ? squeeze(equalized(expand_dims(bytes, 0)), {0}) : equalized(bytes);
    return cast(y * factor + options_.min_value, compute_dtype());
  }

 private:
  Tensor equalized(const Tensor& images) const {
    const PartialShape known = images.partial_shape();
    const TileAxis rows(known_size(known, 1), options_.tile_grid_size.height),
        columns(known_size(known, 2), options_.tile_grid_size.width);
    const std::int64_t channels = known_size(known, 3);
    const Tensor margins =
        reshape(Tensor(std::vector<std::int64_t>{0, 0, 0, rows.padded() - rows.size, 0,
                                                 columns.padded() - columns.size, 0, 0}),
                {4, 2});
    const Tensor padded = pad(images, margins, PadMode::kSymmetric);
    const Tensor level = cast(clip_by_value(padded, 0.0, 255.0), int64);
    const Tensor curves = with_border(transfer_curves(level, rows, columns, channels));

    // The four curves around each pixel, at its level.
    const Neighbours y(rows), x(columns);
    const std::int64_t column_stride = channels * kLevels;
    const std::int64_t row_stride = column_stride * (columns.grid + 2);
    const std::int64_t image_stride = row_stride * (rows.grid + 2);
    const Tensor image = reshape(cast(range(shape(images)[0]), int64), {-1, 1, 1, 1});
    const Tensor channel = reshape(cast(range(channels), int64), {1, 1, 1, -1});
    const Tensor base = image * image_stride + channel * kLevels + level;
    const Tensor table = reshape(curves, {-1});
    const auto in_row = [](const Tensor& t) { return reshape(t, {1, -1, 1, 1}); };
    const auto in_column = [](const Tensor& t) { return reshape(t, {1, 1, -1, 1}); };
    const auto between_columns = [&](const Tensor& row) {
      const Tensor start = base + in_row(row) * row_stride;
      const Tensor left = gather(table, start + in_column(x.first) * column_stride);
      const Tensor right = gather(table, start + in_column(x.second) * column_stride);
      return left * (1.0 - in_column(x.weight)) + right * in_column(x.weight);
    };
    const Tensor result = between_columns(y.first) * (1.0 - in_row(y.weight)) +
                          between_columns(y.second) * in_row(y.weight);
    return result[{Slice(), Slice(0, rows.size), Slice(0, columns.size)}];
  }

  // [batch, tiles down, tiles across, channels, levels]: what replaces each level in a tile.
  Tensor transfer_curves(const Tensor& level, const TileAxis& rows, const TileAxis& columns,
                         std::int64_t channels) const {
    const std::int64_t pixels = rows.tile * columns.tile;
    const Tensor tiles = reshape(
        transpose(reshape(level, {-1, rows.grid, rows.tile, columns.grid, columns.tile, channels}),
                  {0, 1, 3, 5, 2, 4}),
        {-1, pixels});
    const Tensor count = cast(shape(tiles)[0], int64);
    const Tensor bin = tiles + expand_dims(range(count), 1) * kLevels;
    Tensor histogram = reshape(math::unsorted_segment_sum(ones_like(reshape(bin, {-1}), float32),
                                                          reshape(bin, {-1}), count * kLevels),
                               {-1, rows.grid, columns.grid, channels, kLevels});
    if (options_.clip_limit > 0) {
      const double limit = options_.clip_limit * static_cast<double>(pixels) / kLevels;
      const Tensor clipped = minimum(histogram, limit);
      histogram =
          clipped + reduce_sum(histogram - clipped, -1, true) / static_cast<double>(kLevels);
    }
    const Tensor sums = cumsum(histogram, -1);
    const Tensor least = reduce_min(sums, -1, true);
    const Tensor rest = static_cast<double>(pixels) - least;
    const Tensor divisor = where(equal(rest, zeros_like(rest)), ones_like(rest), rest);
    return clip_by_value((sums - least) * 255.0 / divisor, 0.0, 255.0);
  }

  static Tensor with_border(const Tensor& curves) {
    const Slice all;
    const Tensor taller =
        concat({curves[{all, Slice(0, 1)}], curves, curves[{all, Slice(-1, std::nullopt)}]}, 1);
    return concat(
        {taller[{all, all, Slice(0, 1)}], taller, taller[{all, all, Slice(-1, std::nullopt)}]}, 2);
  }

  ClaheOptions options_;
};

// Keras has the range and the grid as lists.
constexpr auto kClahe = [](auto& a, auto& o) {
  std::vector<double> range{o.min_value, o.max_value};
  a("value_range", range);
  if (range.size() != 2) throw InvalidArgumentError("value_range must have two numbers.");
  if constexpr (requires { o.min_value = range[0]; }) {
    o.min_value = range[0];
    o.max_value = range[1];
  }
  a("clip_limit", o.clip_limit);
  a("tile_grid_size", o.tile_grid_size);
  a.fixed("data_format", "channels_last");
};
const bool kRegistered =
    internal::register_layer_class<ContrastLimitedAdaptiveHistogramEqualization, ClaheOptions>(
        "ContrastLimitedAdaptiveHistogramEqualization", kClahe);

}  // namespace

ContrastLimitedAdaptiveHistogramEqualization::ContrastLimitedAdaptiveHistogramEqualization(
    const ClaheOptions& options)
    : Layer(internal::with_arguments(std::make_shared<ClaheImpl>(options), kClahe, options)) {}

}  // namespace tandem::keras
