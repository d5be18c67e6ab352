#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/core/string_list.h"
#include "tandem/data/dataset.h"
#include "tandem/data/file_datasets.h"
#include "tandem/data/file_names.h"

namespace tandem::data {

struct MakeCsvOptions {
  StringList column_names = {};                 ///< of all columns; empty: the first line has them
  std::vector<CsvColumn> column_defaults = {};  ///< of the columns wanted; empty: inferred
  String label_name = {};                       ///< a column apart; empty: none
  StringList select_columns = {};               ///< those wanted, by name; empty: all
  char field_delim = ',';
  bool use_quote_delim = true;
  String na_value = {};  ///< a missing value, as an empty field is
  bool header = true;    ///< the first line of each file has names
  /// Times over; nothing: for ever, and then the last batch of too few rows is left out.
  std::optional<std::int64_t> num_epochs = std::nullopt;
  bool shuffle = true;
  std::int64_t shuffle_buffer_size = 10000;
  std::optional<std::int64_t> shuffle_seed = std::nullopt;
  std::int64_t num_parallel_reads = 1;  ///< files read at a time
  /// From so many rows types are inferred: int32, int64, float, double or string, the first that
  /// all fit. A missing value is then 0 or "".
  std::int64_t num_rows_for_inference = 100;
  String compression_type = {};  ///< as in FileOptions
  bool ignore_errors = false;    ///< leave out records that cannot be read
};

/// Batches of rows of CSV files, by column: `maps()` gives them under the columns' names. With a
/// label the elements are pairs, features and label:
///
///     auto rows = td::data::make_csv_dataset("train-*.csv", 32, {.label_name = "survived"})
///                     .map([](td::data::TensorMap features, td::Tensor label) { … });
///
/// and components are named "0/age", …, "1". Throws InvalidArgumentError for files whose first
/// lines differ, names that are given twice, and columns that there are not; NotFoundError if no
/// file matches.
TANDEM_EXPORT Dataset make_csv_dataset(FileNames file_patterns, std::int64_t batch_size,
                                       const MakeCsvOptions& options = {});

namespace experimental {

using data::make_csv_dataset;

}  // namespace experimental
}  // namespace tandem::data
