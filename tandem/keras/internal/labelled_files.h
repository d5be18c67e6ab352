#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/keras/image_dataset.h"
#include "tandem/keras/internal/file_index.h"

namespace tandem::keras::internal {

/// Which files the functions NAME_dataset_from_directory take. Of the options those count that have
/// nothing to do with images.
struct LabelledFilesRequest {
  std::string directory;
  utils::ImageDatasetOptions options;
  std::span<const std::string_view> endings;  ///< of the files' names, in lower case
  const char* what;                           ///< "images", for errors
  const char* endings_text;                   ///< "('.png', '.jpg')", for errors
};

/// The files of the subset, in their order, with their labels.
struct LabelledFiles {
  std::vector<IndexedFile> files;
  std::vector<std::string> class_names;
  bool labelled = false;
  std::int64_t seed = 0;  ///< the one given, or one that was drawn

  std::vector<std::string> paths() const;
};

/// Throws InvalidArgumentError, with Keras's text, for options that do not fit, and where no file
/// is found; NotFoundError without the folder.
LabelledFiles find_labelled_files(const LabelledFilesRequest& request);

/// The paths, and beside them the labels if there are any, in another order at each iteration if
/// `shuffle`.
data::Dataset labelled_paths(const LabelledFilesRequest& request, const LabelledFiles& found,
                             bool shuffle);

}  // namespace tandem::keras::internal
