#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/core/string_list.h"
#include "tandem/data/dataset.h"

/// Labelled images from a folder, as Keras's image_dataset_from_directory makes them: the same
/// files, labels and pixels in the same order for the same seed.
namespace tandem::keras::utils {

/// Where labels come from: "inferred" from the names of the folders, std::nullopt (there are none),
/// or one number for each file, in the order of the files' paths.
class FileLabels {
 public:
  FileLabels(const char* word) : word_(word) {}  // NOLINT: implicit, `.labels = "inferred"`
  FileLabels(std::nullopt_t) {}                  // NOLINT: implicit
  FileLabels(std::vector<std::int32_t> list)     // NOLINT: implicit
      : word_("list"), list_(std::move(list)) {}

  bool none() const { return word_.empty(); }
  /// "inferred", another word that was given by mistake, or "list".
  const std::string& word() const { return word_; }
  const std::vector<std::int32_t>& list() const { return list_; }
  bool is_list() const { return word_ == "list"; }

 private:
  std::string word_;
  std::vector<std::int32_t> list_;
};

struct ImageDatasetOptions {
  FileLabels labels = "inferred";
  /// "int" (int32), "categorical" (float, one-hot), "binary" (float 0 or 1, shape [1]), or none.
  std::optional<String> label_mode = "int";
  StringList class_names = {};                  ///< their order; empty: alphabetical, all folders
  String color_mode = "rgb";                    ///< "grayscale", "rgb" or "rgba"
  std::optional<std::int64_t> batch_size = 32;  ///< std::nullopt: single images
  std::array<std::int64_t, 2> image_size = {256, 256};    ///< height, width
  bool shuffle = true;                                    ///< else in the order of the paths
  std::optional<std::int64_t> seed = std::nullopt;        ///< from 0 to 2^32 - 1
  std::optional<double> validation_split = std::nullopt;  ///< this part of the files, the last ones
  String subset = {};  ///< with a validation_split: "training" or "validation"
  /// bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian or mitchellcubic.
  String interpolation = "bilinear";
  bool follow_links = false;          ///< also look into folders that are symbolic links
  bool crop_to_aspect_ratio = false;  ///< cut what does not fit the proportions of image_size
  bool pad_to_aspect_ratio = false;   ///< or add zeros
  bool verbose = true;                ///< print how many files and classes were found
};

/// A dataset of (images, labels), or of images alone, that knows its files.
class ImageDataset : public data::Dataset {
 public:
  ImageDataset(data::Dataset dataset, std::vector<std::string> names,
               std::vector<std::string> paths)
      : data::Dataset(std::move(dataset)),
        class_names(std::move(names)),
        file_paths(std::move(paths)) {}

  std::vector<std::string> class_names;  ///< label i is class_names[i]; empty without labels
  std::vector<std::string> file_paths;
};

/// The .jpg, .jpeg, .png, .bmp and .gif files below `directory`, one folder for each class; decoded
/// and resized on parallel threads, batched and prefetched. Images are float32 [height, width,
/// channels] with values up to 255 (uint8 for "nearest"). Throws InvalidArgumentError with Keras's
/// text for arguments that do not fit, NotFoundError if the folder is missing; an image that cannot
/// be decoded is an error of its batch and names the file.
///
/// A validation_split so small that no file falls into it leaves all to "training"; Keras gives
/// "validation" all of them and "training" none.
TANDEM_EXPORT ImageDataset image_dataset_from_directory(const String& directory,
                                                        const ImageDatasetOptions& options = {});

/// Keras's subset="both": the datasets for training and validation. `subset` must be left out.
TANDEM_EXPORT std::pair<ImageDataset, ImageDataset> image_datasets_from_directory(
    const String& directory, ImageDatasetOptions options);

}  // namespace tandem::keras::utils
