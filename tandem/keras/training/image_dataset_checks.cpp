#include "tandem/keras/internal/image_dataset_checks.h"

#include <algorithm>
#include <string_view>

#include "tandem/core/error.h"

namespace tandem::keras::internal {
namespace {

using utils::FileLabels;
using utils::ImageDatasetOptions;

constexpr std::string_view kMethods[] = {"bilinear", "nearest",  "bicubic",  "area",
                                         "lanczos3", "lanczos5", "gaussian", "mitchellcubic"};

std::string number(const std::vector<std::int32_t>& values) {
  std::string all = "[";
  for (const std::int32_t value : values) {
    all += (all.size() > 1 ? ", " : "") + std::to_string(value);
  }
  return all + "]";
}

void check_labels(const ImageDatasetOptions& o) {
  const FileLabels& labels = o.labels;
  if (labels.is_list() && !o.class_names.empty()) {
    throw InvalidArgumentError(
        cat("You can only pass `class_names` if `labels=\"inferred\"`. Received: labels=",
            number(labels.list()), ", and class_names=", listed(o.class_names)));
  }
  if (!labels.none() && !labels.is_list() && labels.word() != "inferred") {
    throw InvalidArgumentError(
        cat("`labels` argument should be a list/tuple of integer labels, of the same size as the "
            "number of image files in the target directory. If you wish to infer the labels from "
            "the subdirectory names in the target directory, pass `labels=\"inferred\"`. If you "
            "wish to get a dataset that only contains images (no labels), pass `labels=None`. "
            "Received: labels=",
            labels.word()));
  }
  const auto& mode = o.label_mode;
  if (mode && *mode != "int" && *mode != "categorical" && *mode != "binary") {
    throw InvalidArgumentError(
        cat("`label_mode` argument must be one of \"int\", \"categorical\", \"binary\", or None. "
            "Received: label_mode=",
            *mode));
  }
}

void check_split(const ImageDatasetOptions& o) {
  const double split = o.validation_split.value_or(0);
  if (split != 0 && !(split > 0 && split < 1)) {
    throw InvalidArgumentError(
        cat("`validation_split` must be between 0 and 1, received: ", split));
  }
  if ((split != 0) == o.subset.empty()) {
    throw InvalidArgumentError(
        "If `subset` is set, `validation_split` must be set, and inversely.");
  }
  if (o.subset == "both") {
    throw InvalidArgumentError(
        "`subset` \"both\" has two datasets: call image_datasets_from_directory.");
  }
  if (!o.subset.empty() && o.subset != "training" && o.subset != "validation") {
    throw InvalidArgumentError(cat(
        "`subset` must be either \"training\", \"validation\" or \"both\", received: ", o.subset));
  }
  if (split != 0 && o.shuffle && !o.seed) {
    throw InvalidArgumentError(
        "If using `validation_split` and shuffling the data, you must provide a `seed` argument, "
        "to make sure that there is no overlap between the training and validation subset.");
  }
}

}  // namespace

std::string listed(const std::vector<std::string>& names) {
  std::string all = "[";
  for (const std::string& name : names) all += (all.size() > 1 ? ", '" : "'") + name + "'";
  return all + "]";
}
std::int64_t channels_of(const std::string& color_mode) {
  if (color_mode == "rgb") return 3;
  if (color_mode == "rgba") return 4;
  if (color_mode == "grayscale") return 1;
  throw InvalidArgumentError(
      cat("`color_mode` must be one of {\"rgb\", \"rgba\", \"grayscale\"}. Received: color_mode=",
          color_mode));
}

void check_image_options(const ImageDatasetOptions& o) {
  check_labels(o);
  channels_of(o.color_mode);
  if (o.image_size[0] <= 0 || o.image_size[1] <= 0) {
    throw InvalidArgumentError(
        cat("Invalid `image_size` value. Expected a tuple of 2 integers. Received: image_size=(",
            o.image_size[0], ", ", o.image_size[1], ")"));
  }
  if (std::find(std::begin(kMethods), std::end(kMethods), o.interpolation) == std::end(kMethods)) {
    throw InvalidArgumentError(
        cat("Argument `interpolation` should be one of ('bilinear', 'nearest', 'bicubic', 'area', "
            "'lanczos3', 'lanczos5', 'gaussian', 'mitchellcubic'). Received: interpolation=",
            o.interpolation));
  }
  if (o.crop_to_aspect_ratio && o.pad_to_aspect_ratio) {
    throw InvalidArgumentError(
        "Only one of `pad_to_aspect_ratio`, `crop_to_aspect_ratio` can be set to `True`.");
  }
  check_split(o);
  if (o.seed && (*o.seed < 0 || *o.seed > 0xffffffff)) {
    throw InvalidArgumentError("Seed must be between 0 and 2**32 - 1");
  }
  if (o.batch_size && *o.batch_size <= 0) {
    throw InvalidArgumentError(
        cat("Batch size must be greater than zero, got ", *o.batch_size, "."));
  }
}

}  // namespace tandem::keras::internal
