#include "tandem/keras/bounding_boxes.h"

#include <algorithm>
#include <cctype>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::utils::bounding_boxes {
namespace {

constexpr double kEpsilon = 1e-7;  // keras.config.epsilon()

// The four numbers of boxes, each [..., 1].
struct Sides {
  Tensor left, top, right, bottom;
};
std::vector<Tensor> numbers_of(const Tensor& boxes) {
  if (boxes.rank() < 1 || boxes.dim(-1) != 4) {
    throw InvalidArgumentError(cat("Bounding boxes are [boxes, 4] or [batch, boxes, 4], got ",
                                   boxes.partial_shape(), "."));
  }
  return split(cast(boxes, float32), 4, -1);
}
Sides sides_of(const Tensor& boxes) {
  const std::vector<Tensor> n = numbers_of(boxes);
  return {n[0], n[1], n[2], n[3]};
}
Tensor boxes_of(const Sides& s) { return concat({s.left, s.top, s.right, s.bottom}, -1); }

// A format is the order of its axes, what its numbers are, and whether they are shares.
struct Format {
  enum class Kind : unsigned char { kCorners, kSize, kCenter };
  Kind kind = Kind::kCorners;
  bool y_first = false;
  bool relative = false;
};

Format format_of(const std::string& given) {
  std::string name = given;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  Format format;
  std::string_view rest = name;
  if (rest.starts_with("rel_")) {
    format.relative = true;
    rest.remove_prefix(4);
  }
  if (rest == "xyxy") return format;
  if (rest == "yxyx") return {Format::Kind::kCorners, true, format.relative};
  if (rest == "xywh") return {Format::Kind::kSize, false, format.relative};
  if (rest == "center_xywh") return {Format::Kind::kCenter, false, format.relative};
  if (rest == "center_yxhw" && !format.relative) return {Format::Kind::kCenter, true, false};
  throw InvalidArgumentError(
      cat("There is no format of bounding boxes '", given, "'. There are xyxy, yxyx, xywh, ",
          "center_xywh, center_yxhw, rel_xyxy, rel_yxyx, rel_xywh and rel_center_xywh."));
}

Sides to_sides(const Tensor& boxes, const Format& format) {
  std::vector<Tensor> n = numbers_of(boxes);
  if (format.y_first) {
    std::swap(n[0], n[1]);
    std::swap(n[2], n[3]);
  }
  switch (format.kind) {
    case Format::Kind::kCorners: return {n[0], n[1], n[2], n[3]};
    case Format::Kind::kSize: return {n[0], n[1], n[0] + n[2], n[1] + n[3]};
    case Format::Kind::kCenter: break;
  }
  const Tensor half_width = n[2] / 2.0, half_height = n[3] / 2.0;
  return {n[0] - half_width, n[1] - half_height, n[0] + half_width, n[1] + half_height};
}

Tensor from_sides(const Sides& s, const Format& format) {
  std::vector<Tensor> n{s.left, s.top, s.right, s.bottom};
  if (format.kind != Format::Kind::kCorners) {
    n[2] = s.right - s.left;
    n[3] = s.bottom - s.top;
  }
  if (format.kind == Format::Kind::kCenter) {
    n[0] = s.left + n[2] / 2.0;
    n[1] = s.top + n[3] / 2.0;
  }
  if (format.y_first) {
    std::swap(n[0], n[1]);
    std::swap(n[2], n[3]);
  }
  return concat(n, -1);
}

Sides scaled(const Sides& s, double x, double y) {
  return {s.left * x, s.top * y, s.right * x, s.bottom * y};
}

Tensor area(const Sides& s) { return (s.right - s.left) * (s.bottom - s.top); }

Tensor column_as_row(const Tensor& column) {
  return column.rank() == 2 ? transpose(column, {1, 0}) : transpose(column, {0, 2, 1});
}

void check_delta_format(const std::string& format) {
  if (format == "center_xywh" || format == "center_yxhw") return;
  throw InvalidArgumentError(
      cat("`encoding_format` must be \"center_xywh\" or \"center_yxhw\", not '", format, "'."));
}
Tensor variance_of(const DeltaOptions& options) {
  const std::array<double, 4>& v = *options.variance;
  return Tensor(std::vector<float>(v.begin(), v.end()));
}

}  // namespace

Tensor convert_format(const Tensor& boxes, const String& source, const String& target,
                      std::optional<ImageSize> image_size) {
  Format from = format_of(source), to = format_of(target);
  if (from.relative && to.relative) from.relative = to.relative = false;
  if ((from.relative || to.relative) && !image_size) {
    throw InvalidArgumentError(cat("Boxes from '", source, "' to '", target,
                                   "' need the size of the image, `image_size`."));
  }
  Sides sides = to_sides(boxes, from);
  if (from.relative) sides = scaled(sides, image_size->width, image_size->height);
  if (to.relative) sides = scaled(sides, 1 / image_size->width, 1 / image_size->height);
  return from_sides(sides, to);
}

LabeledBoxes clip_to_image_size(const LabeledBoxes& given, ImageSize image_size,
                                const String& format) {
  if (format != "xyxy" && format != "rel_xyxy") {
    throw UnimplementedError(
        cat("clip_to_image_size takes \"xyxy\" and \"rel_xyxy\", not '", format, "'."));
  }
  const double width = format == "xyxy" ? image_size.width : 1;
  const double height = format == "xyxy" ? image_size.height : 1;
  const Sides s = sides_of(given.boxes);
  const Sides cut{clip_by_value(s.left, 0.0, width), clip_by_value(s.top, 0.0, height),
                  clip_by_value(s.right, 0.0, width), clip_by_value(s.bottom, 0.0, height)};
  if (!given.labels.defined()) return {boxes_of(cut), {}};
  const Tensor some = squeeze(area(cut), {-1}) > 0.0;
  return {boxes_of(cut), where(some, given.labels, -ones_like(given.labels))};
}

Tensor crop(const Tensor& boxes, double top, double left, double height, double width) {
  const Sides s = sides_of(boxes);
  return boxes_of(
      {clip_by_value(s.left - left, 0.0, width), clip_by_value(s.top - top, 0.0, height),
       clip_by_value(s.right - left, 0.0, width), clip_by_value(s.bottom - top, 0.0, height)});
}

Tensor pad(const Tensor& boxes, double top, double left) {
  const Sides s = sides_of(boxes);
  return boxes_of({s.left + left, s.top + top, s.right + left, s.bottom + top});
}

Tensor affine_transform(const Tensor& boxes, ImageSize size, const AffineOptions& o) {
  const auto given = [&](const Tensor& numbers, double otherwise) {
    return numbers.defined() ? cast(reshape(numbers, {-1}), float32)
                             : Tensor(std::vector<float>{static_cast<float>(otherwise)});
  };
  constexpr double kDegree = std::numbers::pi / 180;
  // The matrix of the inverse, as images are transformed: from the result to the source.
  const Tensor rotation = given(o.angle, 0) * -kDegree;
  const Tensor shear_x = given(o.shear_x, 0) * -kDegree, shear_y = given(o.shear_y, 0) * -kDegree;
  const Tensor scale = given(o.scale, 1);
  const double center_x = o.center_x * (size.width - 1), center_y = o.center_y * (size.height - 1);
  const Tensor to_x = given(o.translate_x, 0) * -(size.width - 1) + center_x;
  const Tensor to_y = given(o.translate_y, 0) * -(size.height - 1) + center_y;
  const Tensor turned = rotation - shear_y;
  const Tensor a = cos(turned) / cos(shear_y);
  const Tensor b = a * tan(shear_x) + sin(rotation);
  const Tensor c = -sin(turned) / cos(shear_y);
  const Tensor d = cos(rotation) - c * tan(shear_x);
  const Tensor xx = d * scale, xy = -b * scale, yx = -c * scale, yy = a * scale;
  const auto each = [](const Tensor& numbers) { return reshape(numbers, {-1, 1, 1}); };
  const Tensor x0 = each(center_x - xx * to_x - xy * to_y);
  const Tensor y0 = each(center_y - yx * to_x - yy * to_y);

  const Sides s = sides_of(boxes);
  const Tensor x = concat({s.left, s.right, s.right, s.left}, -1);
  const Tensor y = concat({s.top, s.top, s.bottom, s.bottom}, -1);
  const Tensor moved_x = x * each(xx) + y * each(xy) + x0;
  const Tensor moved_y = x * each(yx) + y * each(yy) + y0;
  return boxes_of({reduce_min(moved_x, -1, true), reduce_min(moved_y, -1, true),
                   reduce_max(moved_x, -1, true), reduce_max(moved_y, -1, true)});
}

Tensor encode_box_to_deltas(const Tensor& anchors, const Tensor& boxes,
                            const DeltaOptions& options) {
  check_delta_format(options.encoding_format);
  const auto parts = [&](const Tensor& given, const String& format) {
    return split(convert_format(given, format, options.encoding_format, options.image_size), 2, -1);
  };
  const std::vector<Tensor> anchor = parts(anchors, options.anchor_format);
  const std::vector<Tensor> box = parts(boxes, options.box_format);
  const Tensor anchor_size = maximum(anchor[1], kEpsilon);
  const Tensor deltas = concat(
      {(box[0] - anchor[0]) / anchor_size, math::log(maximum(box[1], kEpsilon) / anchor_size)}, -1);
  return options.variance ? deltas / variance_of(options) : deltas;
}

Tensor decode_deltas_to_boxes(const Tensor& anchors, const Tensor& boxes_delta,
                              const DeltaOptions& options) {
  check_delta_format(options.encoding_format);
  const std::vector<Tensor> anchor = split(
      convert_format(anchors, options.anchor_format, options.encoding_format, options.image_size),
      2, -1);
  const Tensor given = cast(boxes_delta, float32);
  const std::vector<Tensor> delta =
      split(options.variance ? given * variance_of(options) : given, 2, -1);
  const Tensor boxes = concat({delta[0] * anchor[1] + anchor[0], exp(delta[1]) * anchor[1]}, -1);
  return convert_format(boxes, options.encoding_format, options.box_format, options.image_size);
}

Tensor compute_iou(const Tensor& boxes1, const Tensor& boxes2, const String& format,
                   const IouOptions& options) {
  for (const Tensor& boxes : {boxes1, boxes2}) {
    if (boxes.rank() == 2 || boxes.rank() == 3) continue;
    throw InvalidArgumentError(cat("compute_iou takes boxes [boxes, 4] or [batch, boxes, 4], got ",
                                   boxes.partial_shape(), "."));
  }
  const Tensor first = convert_format(boxes1, format, "xyxy", options.image_size);
  const Tensor second = convert_format(boxes2, format, "xyxy", options.image_size);
  const Sides a = sides_of(first), b = sides_of(second);
  const auto row = column_as_row;
  const Tensor height = minimum(a.bottom, row(b.bottom)) - maximum(a.top, row(b.top));
  const Tensor width = minimum(a.right, row(b.right)) - maximum(a.left, row(b.left));
  const Tensor common = maximum(height, 0.0) * maximum(width, 0.0);
  const Tensor result = common / (area(a) + row(area(b)) - common + kEpsilon);
  if (!options.use_masking) return result;
  const Tensor masked = logical_or(reduce_max(first, -1, true) < 0.0,
                                   row(cast(reduce_max(second, -1, true) < 0.0, float32)) > 0.5);
  return where(masked, zeros_like(result) + options.mask_val, result);
}

Tensor compute_ciou(const Tensor& boxes1, const Tensor& boxes2, const String& format) {
  if (format_of(format).relative) {
    throw InvalidArgumentError(
        cat("compute_ciou takes no relative boxes, '", format, "': convert_format makes others."));
  }
  const Sides a = sides_of(convert_format(boxes1, format, "xyxy"));
  const Sides b = sides_of(convert_format(boxes2, format, "xyxy"));
  const Tensor width_a = a.right - a.left, height_a = a.bottom - a.top + kEpsilon;
  const Tensor width_b = b.right - b.left, height_b = b.bottom - b.top + kEpsilon;
  const Tensor common = maximum(minimum(a.right, b.right) - maximum(a.left, b.left), 0.0) *
                        maximum(minimum(a.bottom, b.bottom) - maximum(a.top, b.top), 0.0);
  const Tensor whole = width_a * height_a + width_b * height_b - common + kEpsilon;
  const Tensor iou = common / (whole + kEpsilon);
  const Tensor hull_width = maximum(a.right, b.right) - minimum(a.left, b.left);
  const Tensor hull_height = maximum(a.bottom, b.bottom) - minimum(a.top, b.top);
  const Tensor diagonal = square(hull_width) + square(hull_height) + kEpsilon;
  const Tensor distance = square((a.left + a.right) / 2.0 - (b.left + b.right) / 2.0) +
                          square((a.top + a.bottom) / 2.0 - (b.top + b.bottom) / 2.0);
  const Tensor v = square(atan(width_b / height_b) - atan(width_a / height_a)) *
                   (4 / (std::numbers::pi * std::numbers::pi));
  const Tensor alpha = v / (v - iou + (1 + kEpsilon));
  return squeeze(iou - (distance / diagonal + v * alpha), {-1});
}

}  // namespace tandem::keras::utils::bounding_boxes
