#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "tandem/core/csv.h"
#include "tandem/core/error.h"
#include "tandem/data/csv_dataset.h"
#include "tandem/data/structure.h"
#include "tandem/ops/host_ops.h"

namespace tandem::data {
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string all = "[";
  for (const std::string& name : names) all += (all.size() > 1 ? ", '" : "'") + name + "'";
  return all + "]";
}

std::vector<std::string> matching(const FileNames& patterns) {
  std::vector<std::string> files;
  for (const std::string& pattern : patterns.list()) {
    const auto found = io::matching_files(Tensor(pattern)).to_vector<std::string>();
    files.insert(files.end(), found.begin(), found.end());
  }
  std::sort(files.begin(), files.end());
  if (files.empty())
    throw NotFoundError(cat("make_csv_dataset: no file matches ", listed(patterns.list()), "."));
  return files;
}

CsvOptions csv_options(const MakeCsvOptions& o) {
  CsvOptions csv;
  csv.compression_type = o.compression_type;
  csv.header = o.header;
  csv.field_delim = o.field_delim;
  csv.use_quote_delim = o.use_quote_delim;
  csv.na_value = o.na_value;
  return csv;
}

std::vector<std::string> first_line(const std::string& file, const MakeCsvOptions& o) {
  FileOptions files;
  files.compression_type = o.compression_type;
  Iterator lines = TextLineDataset(FileNames(file), files).iterator();
  Element line;
  if (!lines.next(line)) {
    throw InvalidArgumentError(
        cat("Failed when reading the header line of ", file, ". Is it an empty file?"));
  }
  std::string text = line[0].item<std::string>();
  if (!text.empty() && text.back() == '\r') text.pop_back();
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  CsvFormat format;
  format.delimiter = o.field_delim;
  format.quotes = o.use_quote_delim;
  std::vector<std::string> names;
  CsvReader(std::move(format)).split(text, names);
  return names;
}

std::vector<std::string> column_names(const std::vector<std::string>& files,
                                      const MakeCsvOptions& o) {
  std::vector<std::string> names = o.column_names;
  if (names.empty()) {
    if (!o.header) {
      throw InvalidArgumentError(
          "Expected `column_names` or `header` arguments. Neither is provided.");
    }
    names = first_line(files[0], o);
    for (const std::string& file : files) {
      if (first_line(file, o) == names) continue;
      throw InvalidArgumentError(
          cat("All input CSV files should have the same column names in the header row. File ",
              file, " has different column names."));
    }
  }
  if (std::set<std::string>(names.begin(), names.end()).size() != names.size()) {
    throw InvalidArgumentError(
        cat("Either `column_names` argument or CSV header row contains duplicate column names: ",
            listed(names)));
  }
  return names;
}

// The numbers of the columns wanted, ascending.
std::vector<std::int64_t> wanted_columns(const std::vector<std::string>& names,
                                         const MakeCsvOptions& o) {
  std::set<std::int64_t> wanted;
  for (const std::string& name : o.select_columns) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      throw InvalidArgumentError(cat("Column ", name, " specified in `select_columns` must be one ",
                                     "of the columns: ", listed(names), "."));
    }
    if (!wanted.insert(at - names.begin()).second) {
      throw InvalidArgumentError(
          cat("The `select_columns` argument contains duplicate columns: ['", name, "']."));
    }
  }
  if (wanted.empty()) {
    for (std::size_t i = 0; i < names.size(); ++i) wanted.insert(static_cast<std::int64_t>(i));
  }
  return {wanted.begin(), wanted.end()};
}

// From the narrowest to the widest.
constexpr DType kTypes[] = {DType::kInt32, DType::kInt64, DType::kFloat, DType::kDouble,
                            DType::kString};

bool fits(const std::string& text, DType dtype) {
  if (dtype == DType::kInt32) {
    std::int32_t value = 0;
    return parse_number(text, value);
  }
  if (dtype == DType::kInt64) {
    std::int64_t value = 0;
    return parse_number(text, value);
  }
  if (dtype == DType::kString) return true;
  double value = 0;
  const double most = dtype == DType::kFloat
                          ? static_cast<double>(std::numeric_limits<float>::max())
                          : std::numeric_limits<double>::max();
  return parse_number(text, value) && value <= most;
}

std::vector<CsvColumn> inferred_columns(const std::vector<std::string>& files,
                                        std::size_t num_columns,
                                        const std::vector<std::int64_t>& wanted,
                                        const MakeCsvOptions& o) {
  CsvOptions csv = csv_options(o);
  csv.select_cols = wanted.size() == num_columns ? std::vector<std::int64_t>{} : wanted;
  const std::vector<CsvColumn> texts(wanted.size(), CsvColumn(Tensor("")));
  std::vector<int> types(wanted.size(), -1);
  const Dataset rows = CsvDataset(FileNames(files), texts, csv).take(o.num_rows_for_inference);
  for (const Element& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string text = row[i].item<std::string>();
      if (text.empty() || text == o.na_value) continue;
      int type = std::max(types[i], 0);
      while (!fits(text, kTypes[type])) ++type;
      types[i] = type;
    }
  }
  std::vector<CsvColumn> columns;
  for (const int type : types) {
    const DType dtype = type < 0 ? DType::kString : kTypes[type];
    columns.emplace_back(Tensor(Array::zeros(dtype, Shape{1})));
  }
  return columns;
}

Dataset rows_of(const std::vector<std::string>& files, const std::vector<CsvColumn>& columns,
                const CsvOptions& csv, const MakeCsvOptions& o) {
  Dataset names = from_tensor_slices(Tensor::from(files));
  if (o.shuffle)
    names = names.shuffle(static_cast<std::int64_t>(files.size()), {.seed = o.shuffle_seed});
  const DatasetFn open = [columns, csv, skip = o.ignore_errors](const Tensor& file) -> Dataset {
    const Dataset rows = CsvDataset(FileNames(file), columns, csv);
    return skip ? rows.ignore_errors() : rows;
  };
  if (o.num_parallel_reads == 1) return names.flat_map(open);
  return names.interleave(
      open, {.cycle_length = o.num_parallel_reads, .num_parallel_calls = o.num_parallel_reads});
}

}  // namespace

Dataset make_csv_dataset(FileNames file_patterns, std::int64_t batch_size,
                         const MakeCsvOptions& o) {
  const std::vector<std::string> files = matching(file_patterns);
  const std::vector<std::string> all = column_names(files, o);
  const std::vector<std::int64_t> wanted = wanted_columns(all, o);
  const std::vector<CsvColumn> columns = o.column_defaults.empty()
                                             ? inferred_columns(files, all.size(), wanted, o)
                                             : o.column_defaults;
  if (columns.size() != wanted.size()) {
    throw InvalidArgumentError(cat("`column_defaults` has length ", columns.size(), ", but ",
                                   wanted.size(), " columns are wanted."));
  }
  std::vector<std::string> names;
  for (const std::int64_t i : wanted) names.push_back(all[static_cast<std::size_t>(i)]);
  const auto label =
      o.label_name.empty() ? names.end() : std::find(names.begin(), names.end(), o.label_name);
  if (!o.label_name.empty() && label == names.end()) {
    throw InvalidArgumentError(cat("`label_name` provided must be one of the columns: ",
                                   listed(names), ". Received: ", o.label_name, "."));
  }
  CsvOptions csv = csv_options(o);
  if (wanted.size() != all.size()) csv.select_cols = wanted;
  Dataset rows = rows_of(files, columns, csv, o);
  if (o.shuffle) rows = rows.shuffle(o.shuffle_buffer_size, {.seed = o.shuffle_seed});
  if (o.num_epochs != 1) rows = rows.repeat(o.num_epochs.value_or(-1));
  rows = rows.batch(batch_size, {.drop_remainder = !o.num_epochs});
  auto result_names = std::make_shared<internal::ResultNames>();
  if (label == names.end()) {
    result_names->set(names);
  } else {
    // The label comes last, and features are a map before it.
    const auto at = static_cast<std::size_t>(label - names.begin());
    rows = rows.map([at](const Element& row) {
      Element out = row;
      std::rotate(out.begin() + static_cast<std::ptrdiff_t>(at),
                  out.begin() + static_cast<std::ptrdiff_t>(at) + 1, out.end());
      return out;
    });
    Names paths;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i != at) paths.push_back("0/" + names[i]);
    }
    paths.push_back("1");
    result_names->set(std::move(paths));
  }
  return internal::with_names(rows, std::move(result_names)).prefetch(kAutotune);
}

}  // namespace tandem::data
