#include "tandem/keras/image_dataset.h"

#include <algorithm>
#include <iostream>
#include <random>
#include <set>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/keras/internal/file_index.h"
#include "tandem/keras/internal/image_dataset_checks.h"
#include "tandem/ops/ops.h"

namespace tandem::keras::utils {
namespace {

using data::Dataset;

using internal::channels_of;
using internal::listed;

constexpr std::string_view kEndings[] = {".bmp", ".gif", ".jpeg", ".jpg", ".png"};
constexpr std::string_view kEndingsText = "('.bmp', '.gif', '.jpeg', '.jpg', '.png')";
// The files with their labels, in their order, and the names of the classes.
struct Files {
  std::vector<internal::IndexedFile> files;
  std::vector<std::string> class_names;
};

std::vector<std::string> wanted_folders(const std::string& directory,
                                        const ImageDatasetOptions& o) {
  std::vector<std::string> folders = internal::class_folders(directory);
  if (o.class_names.empty()) return folders;
  for (const std::string& name : o.class_names) {
    if (!std::binary_search(folders.begin(), folders.end(), name)) {
      throw InvalidArgumentError(
          cat("The `class_names` passed did not match the names of the subdirectories of the "
              "target directory. Expected: ",
              listed(folders),
              " (or a subset of it), but received: class_names=", listed(o.class_names)));
    }
  }
  return o.class_names;
}

void attach(const std::vector<std::int32_t>& labels, const std::string& directory, Files& out) {
  if (labels.size() != out.files.size()) {
    throw InvalidArgumentError(
        cat("Expected the lengths of `labels` to match the number of files in the target "
            "directory. len(labels) is ",
            labels.size(), " while we found ", out.files.size(), " files in directory ", directory,
            "."));
  }
  for (std::size_t i = 0; i < labels.size(); ++i) out.files[i].label = labels[i];
  for (const std::int32_t label : std::set<std::int32_t>(labels.begin(), labels.end())) {
    out.class_names.push_back(std::to_string(label));
  }
}

Files find_files(const std::string& directory, const ImageDatasetOptions& o, bool labelled,
                 std::int64_t seed) {
  Files out;
  if (labelled && !o.labels.is_list()) {
    out.class_names = wanted_folders(directory, o);
    out.files = internal::index_files(directory, out.class_names, kEndings, o.follow_links);
  } else {
    if (!o.class_names.empty()) {
      throw InvalidArgumentError(
          "When `labels=None` (no labels), argument `class_names` cannot be specified.");
    }
    out.files = internal::index_files(directory, {""}, kEndings, o.follow_links);
    if (labelled) attach(o.labels.list(), directory, out);
  }
  if (o.verbose) {
    std::cout << "Found " << out.files.size() << " files";
    if (labelled) std::cout << " belonging to " << out.class_names.size() << " classes";
    std::cout << "." << std::endl;
  }
  if (o.shuffle) {
    std::vector<internal::IndexedFile> shuffled;
    for (const std::size_t i :
         internal::numpy_shuffle(out.files.size(), static_cast<std::uint32_t>(seed))) {
      shuffled.push_back(std::move(out.files[i]));
    }
    out.files = std::move(shuffled);
  }
  return out;
}

// Keeps the files of the subset.
void split(const ImageDatasetOptions& o, std::vector<internal::IndexedFile>& files) {
  if (!o.validation_split || *o.validation_split == 0) return;
  const auto held =
      static_cast<std::ptrdiff_t>(*o.validation_split * static_cast<double>(files.size()));
  const auto border = files.end() - held;
  const bool training = o.subset == "training";
  if (training) {
    files.erase(border, files.end());
  } else {
    files.erase(files.begin(), border);
  }
  if (o.verbose) {
    std::cout << "Using " << files.size() << " files for " << o.subset << "." << std::endl;
  }
}

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

Dataset labels_dataset(const std::vector<internal::IndexedFile>& files, const std::string& mode,
                       std::int64_t classes) {
  std::vector<std::int32_t> labels;
  for (const auto& file : files) labels.push_back(file.label);
  Tensor all = Tensor::from(labels);
  if (mode == "binary") all = expand_dims(cast(all, DType::kFloat), 1);
  if (mode == "categorical") all = one_hot(all, classes);
  return data::from_tensor_slices(all);
}

std::int64_t drawn_seed() {
  std::random_device random;
  return static_cast<std::int64_t>(random() % 1000000);
}

ImageDataset make(const std::string& directory, ImageDatasetOptions o, bool shuffle_on_reading) {
  for (char& c : o.interpolation) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  internal::check_image_options(o);
  const bool labelled = !o.labels.none() && o.label_mode;
  const std::int64_t seed = o.seed ? *o.seed : drawn_seed();
  Files found = find_files(directory, o, labelled, seed);
  if (labelled && *o.label_mode == "binary" && found.class_names.size() != 2) {
    throw InvalidArgumentError(
        cat("When passing `label_mode=\"binary\"`, there must be exactly 2 class_names. Received: "
            "class_names=",
            listed(found.class_names)));
  }
  split(o, found.files);
  if (found.files.empty()) {
    throw InvalidArgumentError(
        cat("No images found in directory ", directory, ". Allowed formats: ", kEndingsText));
  }
  std::vector<std::string> paths;
  for (const auto& file : found.files) paths.push_back(file.path);
  Dataset dataset = data::from_tensor_slices(Tensor(Array::vector(paths)));
  if (labelled) {
    dataset =
        data::zip({dataset, labels_dataset(found.files, *o.label_mode,
                                           static_cast<std::int64_t>(found.class_names.size()))});
  }
  if (o.shuffle && shuffle_on_reading) {
    dataset = dataset.shuffle(o.batch_size ? *o.batch_size * 8 : 1024, {.seed = seed});
  }
  const data::MapOptions parallel{.num_parallel_calls = data::kAutotune};
  if (labelled) {
    dataset = dataset.map(
        [o](const Tensor& path, const Tensor& label) { return std::pair(decoded(path, o), label); },
        parallel);
  } else {
    dataset = dataset.map([o](const Tensor& path) { return decoded(path, o); }, parallel);
  }
  if (o.batch_size) dataset = dataset.batch(*o.batch_size);
  dataset = dataset.prefetch(data::kAutotune);
  return {std::move(dataset), std::move(found.class_names), std::move(paths)};
}

}  // namespace

ImageDataset image_dataset_from_directory(const std::string& directory,
                                          const ImageDatasetOptions& options) {
  return make(directory, options, true);
}

std::pair<ImageDataset, ImageDataset> image_datasets_from_directory(const std::string& directory,
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
