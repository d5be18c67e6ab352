#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/keras/applications.h"
#include "tandem/keras/get_file.h"
#include "tandem/keras/internal/model_config.h"
#include "tandem/keras/keras_tensor_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/operators.h"

namespace tandem::keras::applications::imagenet_utils {
namespace {

// Means (and deviations) of ImageNet's channels, along the axis of channels.
Tensor of_channels(const std::array<double, 3>& values, int rank, int axis, DType dtype) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(rank), 1);
  shape[static_cast<std::size_t>(axis)] = 3;
  return cast(reshape(Tensor(std::vector<double>(values.begin(), values.end())), shape), dtype);
}

}  // namespace

Tensor preprocess_input(const Tensor& x, const PreprocessOptions& o) {
  if (o.mode != "caffe" && o.mode != "tf" && o.mode != "torch") {
    throw InvalidArgumentError(
        cat("Expected mode to be one of `caffe`, `tf` or `torch`. Received: mode=", o.mode));
  }
  if (o.data_format != "channels_last" && o.data_format != "channels_first") {
    throw InvalidArgumentError(
        cat("Expected data_format to be one of `channels_first` or `channels_last`. Received: ",
            "data_format=", o.data_format));
  }
  const Tensor y = is_floating(x.dtype()) ? x : cast(x, float32);
  if (o.mode == "tf") return y / 127.5 - 1.0;
  if (y.rank() != 3 && y.rank() != 4) {
    throw InvalidArgumentError(
        cat("preprocess_input takes an image of 3 axes or a batch of 4, got ", x.dtype(),
            x.partial_shape(), "."));
  }
  const int axis = o.data_format == "channels_last" ? y.rank() - 1 : y.rank() - 3;
  if (o.mode == "torch") {
    return (y / 255.0 - of_channels({0.485, 0.456, 0.406}, y.rank(), axis, y.dtype())) /
           of_channels({0.229, 0.224, 0.225}, y.rank(), axis, y.dtype());
  }
  return reverse(y, {axis}) - of_channels({103.939, 116.779, 123.68}, y.rank(), axis, y.dtype());
}

KerasTensor preprocess_input(const KerasTensor& x, const PreprocessOptions& options) {
  if (options.mode == "tf" && is_floating(x.dtype())) return x / 127.5 - 1.0;
  return apply([options](const Tensor& images) { return preprocess_input(images, options); }, x);
}

std::vector<std::vector<ClassScore>> decode_predictions(const Tensor& predictions, int top,
                                                        const String& class_index) {
  constexpr std::int64_t kClasses = 1000;
  if (predictions.rank() != 2 || predictions.dim(1) != kClasses) {
    throw InvalidArgumentError(
        cat("`decode_predictions` expects a batch of predictions (i.e. a 2D array of shape ",
            "(samples, 1000)). Received array with shape: ", predictions.partial_shape()));
  }
  const std::string path =
      class_index.empty()
          ? utils::get_file({.fname = "imagenet_class_index.json",
                             .origin = "https://storage.googleapis.com/download.tensorflow.org/"
                                       "data/imagenet_class_index.json",
                             .cache_subdir = "models"})
          : std::string(class_index);
  const ConfigObject index = internal::object_from_json(fs::read_file(path), path);
  const std::vector<float> scores = cast(predictions, float32).to_vector<float>();
  std::vector<std::vector<ClassScore>> rows;
  for (std::size_t begin = 0; begin < scores.size(); begin += kClasses) {
    std::vector<std::size_t> order(kClasses);
    std::iota(order.begin(), order.end(), begin);
    const auto count = static_cast<std::ptrdiff_t>(std::clamp<int>(top, 0, kClasses));
    std::partial_sort(order.begin(), order.begin() + count, order.end(),
                      [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    std::vector<ClassScore>& row = rows.emplace_back();
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const std::size_t at = order[static_cast<std::size_t>(i)];
      const ConfigValue* entry = index.config.find(std::to_string(at - begin));
      const auto* names = entry ? std::get_if<std::shared_ptr<const ConfigList>>(entry) : nullptr;
      const auto text = [&](std::size_t n) {
        const auto* value = names && (*names)->values.size() > n
                                ? std::get_if<std::string>(&(*names)->values[n])
                                : nullptr;
        if (!value) throw DataLossError(cat(path, " names no class ", at - begin, "."));
        return *value;
      };
      row.push_back({.class_name = text(0), .description = text(1), .score = scores[at]});
    }
  }
  return rows;
}

}  // namespace tandem::keras::applications::imagenet_utils
