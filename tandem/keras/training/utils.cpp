#include "tandem/keras/utils.h"

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/keras/model_impl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/host_ops.h"
#include "tandem/ops/image_adjust_ops.h"
#include "tandem/ops/image_codec_ops.h"
#include "tandem/ops/image_transform_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::utils {

Tensor to_categorical(const Tensor& given, std::optional<std::int64_t> num_classes) {
  Tensor x = cast(given, int64);
  if (x.rank() > 1 && x.dim(-1) == 1) x = squeeze(x, {-1});
  std::int64_t classes = num_classes.value_or(0);
  if (!num_classes) {
    if (x.is_symbolic()) {
      throw FailedPreconditionError(
          "to_categorical: give num_classes; in a traced function the values are not known.");
    }
    classes = reduce_max(x).item<std::int64_t>() + 1;
  }
  return one_hot(x, classes);
}

Tensor pad_sequences(const std::vector<Tensor>& sequences, const PadSequencesOptions& o) {
  const auto check = [](const char* name, std::string_view value) {
    if (value == "pre" || value == "post") return;
    throw InvalidArgumentError(
        cat("pad_sequences: ", name, " is \"pre\" or \"post\", not '", value, "'."));
  };
  check("padding", o.padding);
  check("truncating", o.truncating);
  if (o.maxlen && *o.maxlen < 0) {
    throw InvalidArgumentError(
        cat("pad_sequences: maxlen must not be negative, got ", *o.maxlen, "."));
  }
  std::int64_t longest = 0;
  for (const Tensor& sequence : sequences) {
    if (sequence.rank() < 1)
      throw InvalidArgumentError("pad_sequences: a sequence has at least one axis.");
    longest = std::max(longest, sequence.dim(0));
  }
  const std::int64_t length = o.maxlen.value_or(longest);
  std::vector<Tensor> rows;
  for (const Tensor& sequence : sequences) {
    Tensor row = cast(sequence, o.dtype);
    const std::int64_t have = row.dim(0);
    if (have > length)
      row = o.truncating == "pre" ? row[Slice(have - length, none)] : row[Slice(none, length)];
    if (have < length) {
      std::vector<std::int64_t> paddings(2 * static_cast<std::size_t>(row.rank()), 0);
      paddings[o.padding == "pre" ? 0 : 1] = length - have;
      row = pad(row, Tensor::from(paddings, {row.rank(), 2}), PadMode::kConstant, o.value);
    }
    rows.push_back(row);
  }
  if (rows.empty()) return zeros({0, length}, o.dtype);
  return stack(rows);
}

Tensor normalize(const Tensor& given, std::int64_t axis, double order) {
  const Tensor x = is_floating(given.dtype()) ? given : cast(given, float32);
  Tensor norm = order == 2 ? sqrt(reduce_sum(square(x), axis, true))
                           : pow(reduce_sum(pow(abs(x), order), axis, true), 1 / order);
  return x / where(norm == 0.0, ones_like(norm), norm);
}

std::pair<data::Dataset, data::Dataset> split_dataset(const data::Dataset& dataset,
                                                      double left_size, bool shuffle,
                                                      std::optional<std::int64_t> seed) {
  const std::int64_t count = dataset.cardinality();
  if (count < 0) {
    throw InvalidArgumentError(
        "split_dataset: the number of elements must be known: assert_cardinality states it.");
  }
  const auto left =
      left_size < 1
          ? static_cast<std::int64_t>(std::llround(left_size * static_cast<double>(count)))
          : static_cast<std::int64_t>(left_size);
  if (left <= 0 || left >= count) {
    throw InvalidArgumentError(cat("split_dataset: ", left, " of ", count,
                                   " elements leaves one of the two parts empty."));
  }
  data::Dataset source = dataset;
  if (shuffle) source = source.shuffle(count, {.seed = seed, .reshuffle_each_iteration = false});
  return {source.take(left), source.skip(left)};
}

data::Element pack_x_y_sample_weight(const Tensor& x, const Tensor& y,
                                     const Tensor& sample_weight) {
  data::Element element{x};
  if (y.defined()) element.push_back(y);
  if (sample_weight.defined()) element.push_back(sample_weight);
  return element;
}
std::tuple<Tensor, Tensor, Tensor> unpack_x_y_sample_weight(const data::Element& element) {
  if (element.size() < 1 || element.size() > 3) {
    throw InvalidArgumentError(cat(
        "unpack_x_y_sample_weight: a batch is (x), (x, y) or (x, y, sample_weight), but it has ",
        element.size(), " tensors."));
  }
  const auto at = [&](std::size_t i) { return i < element.size() ? element[i] : Tensor(); };
  return {at(0), at(1), at(2)};
}

Tensor load_img(const String& path, const String& color_mode,
                std::optional<std::pair<std::int64_t, std::int64_t>> target_size,
                const String& interpolation) {
  const std::int64_t channels = color_mode == "grayscale" ? 1 : color_mode == "rgba" ? 4 : 3;
  if (channels == 3 && color_mode != "rgb") {
    throw InvalidArgumentError(
        cat("load_img: color_mode is \"grayscale\", \"rgb\" or \"rgba\", not '", color_mode, "'."));
  }
  Tensor image = image::decode_image(io::read_file(path), channels, uint8, false);
  if (!target_size) return image;
  image =
      image::resize(image, {target_size->first, target_size->second}, {.method = interpolation});
  return image.dtype() == uint8 ? image : saturate_cast(round(image), uint8);
}

Tensor img_to_array(const Tensor& image, const ImageArrayOptions& o) {
  Tensor x = cast(image, o.dtype);
  if (x.rank() == 2) x = expand_dims(x, -1);
  if (x.rank() != 3) {
    throw InvalidArgumentError(
        cat("img_to_array: Unsupported image shape: ", image.partial_shape(), "."));
  }
  return o.data_format == "channels_first" ? transpose(x, {2, 0, 1}) : x;
}

Tensor array_to_img(const Tensor& given, bool scale) {
  Tensor x = cast(given, float32);
  if (scale) {
    x = x - reduce_min(x);
    const Tensor most = reduce_max(x);
    x = where(most != 0.0, x / most, x) * 255.0;
  }
  return cast(x, uint8);
}

void save_img(const String& path, const Tensor& x, bool scale) {
  const Tensor image = x.dtype() == uint8 ? x : array_to_img(x, scale);
  const bool is_jpeg = path.ends_with(".jpg") || path.ends_with(".jpeg");
  io::write_file(path, is_jpeg ? image::encode_jpeg(image) : image::encode_png(image));
}

std::string standardize_dtype(DTypeLike dtype) {
  switch (dtype) {
    case DType::kFloat: return "float32";
    case DType::kDouble: return "float64";
    case DType::kHalf: return "float16";
    default: return dtype_name(dtype);
  }
}

std::vector<KerasTensor> get_source_inputs(const Model& model) {
  return model.model_impl().input_tensors();
}

}  // namespace tandem::keras::utils
