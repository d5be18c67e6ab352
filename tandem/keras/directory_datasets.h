#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/core/string_list.h"
#include "tandem/data/dataset.h"
#include "tandem/keras/image_dataset.h"
#include "tandem/runtime/tensor.h"

/// Datasets of labelled texts and sounds from a folder, and of windows of a time series, as Keras
/// makes them: the same elements in the same order for the same seed.
namespace tandem::keras::utils {

struct TextDatasetOptions {
  FileLabels labels = "inferred";
  /// "int" (int32), "categorical" (float, one-hot), "binary" (float 0 or 1, shape [1]), or none.
  std::optional<String> label_mode = "int";
  StringList class_names = {};                  ///< their order; empty: alphabetical, all folders
  std::optional<std::int64_t> batch_size = 32;  ///< std::nullopt: single texts
  std::optional<std::int64_t> max_length = std::nullopt;  ///< bytes to which texts are cut
  bool shuffle = true;                                    ///< else in the order of the paths
  std::optional<std::int64_t> seed = std::nullopt;        ///< from 0 to 2^32 - 1
  std::optional<double> validation_split = std::nullopt;  ///< this part of the files, the last ones
  String subset = {};         ///< with a validation_split: "training" or "validation"
  bool follow_links = false;  ///< also look into folders that are symbolic links
  bool verbose = true;        ///< print how many files and classes were found
};

/// A dataset of (texts, labels), or of texts alone, that knows its files.
using TextDataset = ImageDataset;

/// The .txt files below `directory`, one folder for each class, as string scalars. Throws
/// InvalidArgumentError with Keras's text for arguments that do not fit, NotFoundError if the
/// folder is missing.
TANDEM_EXPORT TextDataset text_dataset_from_directory(const String& directory,
                                                      const TextDatasetOptions& options = {});

struct AudioDatasetOptions {
  FileLabels labels = "inferred";
  /// "int" (int32), "categorical" (float, one-hot), "binary" (float 0 or 1, shape [1]), or none.
  std::optional<String> label_mode = "int";
  StringList class_names = {};                  ///< their order; empty: alphabetical, all folders
  std::optional<std::int64_t> batch_size = 32;  ///< std::nullopt: single sounds
  /// Samples to which sounds are cut or filled up with zeros. Without it sounds of a batch must be
  /// equally long.
  std::optional<std::int64_t> output_sequence_length = std::nullopt;
  bool shuffle = true;                                    ///< else in the order of the paths
  std::optional<std::int64_t> seed = std::nullopt;        ///< from 0 to 2^32 - 1
  std::optional<double> validation_split = std::nullopt;  ///< this part of the files, the last ones
  String subset = {};         ///< with a validation_split: "training" or "validation"
  bool follow_links = false;  ///< also look into folders that are symbolic links
  bool verbose = true;        ///< print how many files and classes were found
};

/// A dataset of (sounds, labels), or of sounds alone, that knows its files.
using AudioDataset = ImageDataset;

/// The .wav files below `directory`, one folder for each class: float [samples, channels] from -1
/// to 1. Throws InvalidArgumentError with Keras's text for arguments that do not fit, NotFoundError
/// if the folder is missing; a file that cannot be decoded is an error of its batch.
TANDEM_EXPORT AudioDataset audio_dataset_from_directory(const String& directory,
                                                        const AudioDatasetOptions& options = {});

struct TimeseriesDatasetOptions {
  std::int64_t sequence_stride = 1;              ///< steps between the beginnings of sequences
  std::int64_t sampling_rate = 1;                ///< steps between the entries of a sequence
  std::optional<std::int64_t> batch_size = 128;  ///< std::nullopt: single sequences
  bool shuffle = false;
  std::optional<std::int64_t> seed = std::nullopt;         ///< from 0 to 2^32 - 1
  std::optional<std::int64_t> start_index = std::nullopt;  ///< steps before it are left out
  std::optional<std::int64_t> end_index = std::nullopt;    ///< and from it on
};

/// Sequences of `sequence_length` rows of `data`: [batch, sequence_length, …], and beside each the
/// row of `targets` where it begins; an undefined tensor for none.
///
///     auto windows = td::keras::utils::timeseries_dataset_from_array(
///         x[td::Slice(0, -10)], x[td::Slice(10)], 10);   // ten steps, and the one that follows
///
/// Throws InvalidArgumentError with Keras's text for numbers that do not fit.
TANDEM_EXPORT data::Dataset timeseries_dataset_from_array(
    const Tensor& data, const Tensor& targets, std::int64_t sequence_length,
    const TimeseriesDatasetOptions& options = {});

}  // namespace tandem::keras::utils
