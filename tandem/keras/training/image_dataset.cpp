#include "tandem/keras/image_dataset.h"

#include <string_view>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/image_dataset_checks.h"
#include "tandem/keras/internal/labelled_files.h"
#include "tandem/ops/ops.h"

namespace tandem::keras::utils {
namespace {

using data::Dataset;

using internal::channels_of;

constexpr std::string_view kEndings[] = {".bmp", ".gif", ".jpeg", ".jpg", ".png"};
constexpr const char* kEndingsText = "('.bmp', '.gif', '.jpeg', '.jpg', '.png')";
// The largest part in the middle that has the proportions of the target.
Tensor cropped(const Tensor& image, std::int64_t target_height, std::int64_t target_width) {
  const Tensor sides = slice(shape(image), {0}, {2});
  const Tensor across = cast(reverse(sides, {0}) * Tensor{static_cast<std::int32_t>(target_height),
                                                          static_cast<std::int32_t>(target_width)},
                             DType::kFloat);
  const Tensor fitting =
      cast(across / Tensor{static_cast<float>(target_width), static_cast<float>(target_height)},
           DType::kInt32);
  const Tensor kept = maximum(minimum(sides, fitting), Tensor(1));
  const Tensor begin = cast(cast(sides - kept, DType::kFloat) / 2.0, DType::kInt32);
  return slice(image, concat({begin, Tensor{0}}, 0), concat({kept, Tensor{-1}}, 0));
}

Tensor decoded(const Tensor& path, const ImageDatasetOptions& o) {
  Tensor image = image::decode_image(io::read_file(path), channels_of(o.color_mode), uint8, false);
  const auto [height, width] = o.image_size;
  const image::ResizeTo how{.method = o.interpolation};
  if (o.pad_to_aspect_ratio) return image::resize_with_pad(image, height, width, how);
  if (o.crop_to_aspect_ratio) image = cropped(image, height, width);
  return image::resize(image, {height, width}, how);
}

ImageDataset make(const std::string& directory, ImageDatasetOptions o, bool shuffle_on_reading) {
  for (char& c : o.interpolation) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  internal::check_image_options(o);
  const internal::LabelledFilesRequest request{directory, o, kEndings, "images", kEndingsText};
  internal::LabelledFiles found = internal::find_labelled_files(request);
  Dataset dataset = internal::labelled_paths(request, found, o.shuffle && shuffle_on_reading);
  const data::MapOptions parallel{.num_parallel_calls = data::kAutotune};
  if (found.labelled) {
    dataset = dataset.map(
        [o](const Tensor& path, const Tensor& label) { return std::pair(decoded(path, o), label); },
        parallel);
  } else {
    dataset = dataset.map([o](const Tensor& path) { return decoded(path, o); }, parallel);
  }
  if (o.batch_size) dataset = dataset.batch(*o.batch_size);
  dataset = dataset.prefetch(data::kAutotune);
  return {std::move(dataset), std::move(found.class_names), found.paths()};
}

}  // namespace

ImageDataset image_dataset_from_directory(const String& directory,
                                          const ImageDatasetOptions& options) {
  return make(directory, options, true);
}

std::pair<ImageDataset, ImageDataset> image_datasets_from_directory(const String& directory,
                                                                    ImageDatasetOptions options) {
  if (!options.subset.empty() && options.subset != "both") {
    throw InvalidArgumentError(
        cat("`subset` must be left out where both are made, received: ", options.subset));
  }
  options.subset = "training";
  ImageDataset training = make(directory, options, true);
  options.subset = "validation";
  options.verbose = false;
  return {std::move(training), make(directory, options, false)};
}

}  // namespace tandem::keras::utils
