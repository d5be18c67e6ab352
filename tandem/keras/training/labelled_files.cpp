#include "tandem/keras/internal/labelled_files.h"

#include <algorithm>
#include <iostream>
#include <random>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/image_dataset_checks.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/shape_ops.h"

namespace tandem::keras::internal {
namespace {

using data::Dataset;
using utils::ImageDatasetOptions;

std::vector<std::string> wanted_folders(const std::string& directory,
                                        const ImageDatasetOptions& o) {
  std::vector<std::string> folders = class_folders(directory);
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

void attach(const std::vector<std::int32_t>& labels, const std::string& directory,
            LabelledFiles& out) {
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

LabelledFiles find_files(const LabelledFilesRequest& request, bool labelled, std::int64_t seed) {
  const std::string& directory = request.directory;
  const ImageDatasetOptions& o = request.options;
  LabelledFiles out;
  if (labelled && !o.labels.is_list()) {
    out.class_names = wanted_folders(directory, o);
    out.files = index_files(directory, out.class_names, request.endings, o.follow_links);
  } else {
    if (!o.class_names.empty()) {
      throw InvalidArgumentError(
          "When `labels=None` (no labels), argument `class_names` cannot be specified.");
    }
    out.files = index_files(directory, {""}, request.endings, o.follow_links);
    if (labelled) attach(o.labels.list(), directory, out);
  }
  if (o.verbose) {
    std::cout << "Found " << out.files.size() << " files";
    if (labelled) std::cout << " belonging to " << out.class_names.size() << " classes";
    std::cout << "." << std::endl;
  }
  if (o.shuffle) {
    std::vector<IndexedFile> shuffled;
    for (const std::size_t i : numpy_shuffle(out.files.size(), static_cast<std::uint32_t>(seed))) {
      shuffled.push_back(std::move(out.files[i]));
    }
    out.files = std::move(shuffled);
  }
  return out;
}

// Keeps the files of the subset.
void split(const ImageDatasetOptions& o, std::vector<IndexedFile>& files) {
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

Dataset labels_dataset(const std::vector<IndexedFile>& files, const std::string& mode,
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

}  // namespace

std::vector<std::string> LabelledFiles::paths() const {
  std::vector<std::string> all;
  for (const IndexedFile& file : files) all.push_back(file.path);
  return all;
}

LabelledFiles find_labelled_files(const LabelledFilesRequest& request) {
  const ImageDatasetOptions& o = request.options;
  const bool labelled = !o.labels.none() && o.label_mode;
  const std::int64_t seed = o.seed ? *o.seed : drawn_seed();
  LabelledFiles found = find_files(request, labelled, seed);
  found.labelled = labelled;
  found.seed = seed;
  if (labelled && *o.label_mode == "binary" && found.class_names.size() != 2) {
    throw InvalidArgumentError(
        cat("When passing `label_mode=\"binary\"`, there must be exactly 2 class_names. Received: "
            "class_names=",
            listed(found.class_names)));
  }
  split(o, found.files);
  if (found.files.empty()) {
    throw InvalidArgumentError(cat("No ", request.what, " found in directory ", request.directory,
                                   ". Allowed formats: ", request.endings_text));
  }
  return found;
}

Dataset labelled_paths(const LabelledFilesRequest& request, const LabelledFiles& found,
                       bool shuffle) {
  const ImageDatasetOptions& o = request.options;
  Dataset dataset = data::from_tensor_slices(Tensor(Array::vector(found.paths())));
  if (found.labelled) {
    dataset =
        data::zip({dataset, labels_dataset(found.files, *o.label_mode,
                                           static_cast<std::int64_t>(found.class_names.size()))});
  }
  if (!shuffle) return dataset;
  return dataset.shuffle(o.batch_size ? *o.batch_size * 8 : 1024, {.seed = found.seed});
}

}  // namespace tandem::keras::internal
