#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"

namespace tandem {

// Numbers as text, with white space around them, whatever the locale. The whole text must be one.
TANDEM_EXPORT bool parse_number(std::string_view text, float& value);
TANDEM_EXPORT bool parse_number(std::string_view text, double& value);
TANDEM_EXPORT bool parse_number(std::string_view text, std::int32_t& value);
TANDEM_EXPORT bool parse_number(std::string_view text, std::int64_t& value);
TANDEM_EXPORT bool parse_number(std::string_view text, std::uint32_t& value);
TANDEM_EXPORT bool parse_number(std::string_view text, std::uint64_t& value);

/// How records of comma-separated values (RFC 4180) are read.
struct CsvFormat {
  char delimiter = ',';
  bool quotes = true;                 ///< fields may stand in double quotes
  std::string missing;                ///< what stands for a missing value, as an empty field does
  std::vector<std::int64_t> columns;  ///< those wanted, in increasing order; empty: all
  bool to_the_end = true;             ///< what follows the last wanted column is checked too
  std::vector<Array> defaults;        ///< one a wanted column: its dtype, and one value or none
};

/// Reads records: one field a wanted column, as the dtypes of `defaults` say. Immutable.
class TANDEM_EXPORT CsvReader {
 public:
  /// Throws InvalidArgumentError for dtypes other than float, double, int32, int64 and string, for
  /// defaults of more than one value, and columns in another order.
  explicit CsvReader(CsvFormat format);

  const CsvFormat& format() const { return format_; }
  /// The fields of the wanted columns, without quotes. `fields` is used again.
  void split(std::string_view record, std::vector<std::string>& fields) const;
  /// Reads field `i` into element `at` of `out`. `where` is what errors call the record: "record
  /// 3".
  void convert(int i, const std::string& field, Array& out, std::int64_t at,
               std::string_view where) const;
  /// Throws InvalidArgumentError unless there is a field for each column.
  void check_count(std::size_t fields, std::string_view where) const;

 private:
  CsvFormat format_;
};

}  // namespace tandem
