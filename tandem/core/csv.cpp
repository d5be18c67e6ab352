#include "tandem/core/csv.h"

#include <locale.h>
#include <stdlib.h>

#include <charconv>
#include <system_error>
#include <type_traits>
#include <utility>

#include "tandem/core/error.h"

namespace tandem {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string_view without_space(std::string_view s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

locale_t c_locale() {
  static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return locale;
}

template <class T>
bool parse_real(std::string_view s, T& value) {
  const std::string_view text = without_space(s);
  if (text.empty() || text.find('\0') != std::string_view::npos) return false;
  const std::string ended(text);
  char* end = nullptr;
  if constexpr (std::is_same_v<T, float>) {
    value = strtof_l(ended.c_str(), &end, c_locale());
  } else {
    value = strtod_l(ended.c_str(), &end, c_locale());
  }
  return end == ended.c_str() + ended.size();
}

template <class T>
bool parse_integer(std::string_view s, T& value) {
  const std::string_view text = without_space(s);
  const char* begin = text.data();
  const char* const end = begin + text.size();
  if (begin == end) return false;
  if (*begin == '+') {
    ++begin;
    if (begin == end || *begin == '-') return false;
  }
  const auto [stop, error] = std::from_chars(begin, end, value);
  return error == std::errc() && stop == end;
}

}  // namespace

bool parse_number(std::string_view text, float& value) { return parse_real(text, value); }
bool parse_number(std::string_view text, double& value) { return parse_real(text, value); }
bool parse_number(std::string_view text, std::int32_t& value) { return parse_integer(text, value); }
bool parse_number(std::string_view text, std::int64_t& value) { return parse_integer(text, value); }
bool parse_number(std::string_view text, std::uint32_t& value) {
  return parse_integer(text, value);
}
bool parse_number(std::string_view text, std::uint64_t& value) {
  return parse_integer(text, value);
}

CsvReader::CsvReader(CsvFormat format) : format_(std::move(format)) {
  for (std::size_t i = 0; i < format_.defaults.size(); ++i) {
    const Array& value = format_.defaults[i];
    const DType dtype = value.dtype();
    if (dtype != DType::kFloat && dtype != DType::kDouble && dtype != DType::kInt32 &&
        dtype != DType::kInt64 && dtype != DType::kString) {
      throw InvalidArgumentError(cat("csv: data type ", dtype, " not supported in field ", i,
                                     "; it can be float, double, int32, int64 or string."));
    }
    if (value.num_elements() > 1) {
      throw InvalidArgumentError(cat("There should only be 1 default per field but field ", i,
                                     " has ", value.num_elements()));
    }
  }
  std::int64_t last = -1;
  for (const std::int64_t column : format_.columns) {
    if (column <= last) {
      throw InvalidArgumentError("select_cols should be strictly increasing indices");
    }
    last = column;
  }
  if (!format_.columns.empty() && format_.columns.size() != format_.defaults.size()) {
    throw InvalidArgumentError(cat("select_cols should match output size: ", format_.columns.size(),
                                   " columns, ", format_.defaults.size(), " fields."));
  }
}

void CsvReader::split(std::string_view record, std::vector<std::string>& fields) const {
  std::size_t count = 0, at = 0, wanted = 0;
  std::int64_t column = 0;
  std::string passed;
  for (bool more = !record.empty(); more; ++column) {
    if (!format_.to_the_end && wanted > 0 && wanted == format_.columns.size()) break;
    const bool keep = format_.columns.empty() ||
                      (wanted < format_.columns.size() && format_.columns[wanted] == column);
    if (keep && count == fields.size()) fields.emplace_back();
    std::string& field = keep ? fields[count] : passed;
    if (keep) {
      ++count;
      ++wanted;
    }
    if (format_.quotes && at < record.size() && record[at] == '"') {
      field.clear();
      for (++at;;) {
        const std::size_t quote = record.find('"', at);
        if (quote == std::string_view::npos) {
          throw InvalidArgumentError("Quoted field has to end with quote followed by delim or end");
        }
        field += record.substr(at, quote - at);
        at = quote + 1;
        if (at == record.size() || record[at] == format_.delimiter) break;
        if (record[at] != '"') {
          throw InvalidArgumentError("Quote inside a string has to be escaped by another quote");
        }
        field += '"';
        ++at;
      }
    } else {
      const std::size_t begin = at;
      for (; at < record.size() && record[at] != format_.delimiter; ++at) {
        const char c = record[at];
        if ((c == '"' && format_.quotes) || c == '\n' || c == '\r') {
          throw InvalidArgumentError("Unquoted fields cannot have quotes/CRLFs inside");
        }
      }
      field.assign(record.substr(begin, at - begin));
    }
    more = at < record.size();  // at a delimiter: a field follows, perhaps an empty one
    ++at;
  }
  fields.resize(count);
}

void CsvReader::convert(int i, const std::string& field, Array& out, std::int64_t at,
                        std::string_view where) const {
  const Array& fallback = format_.defaults[static_cast<std::size_t>(i)];
  const bool missing = field.empty() || field == format_.missing;
  if (missing && fallback.num_elements() == 0) {
    throw InvalidArgumentError(cat("Field ", i, " is required but missing in ", where, "!"));
  }
  const auto number = [&](auto type) {
    using T = decltype(type);
    T& value = out.data<T>()[at];
    if (missing) {
      value = fallback.data<T>()[0];
    } else if (!parse_number(field, value)) {
      throw InvalidArgumentError(
          cat("Field ", i, " in ", where, " is not a valid ", fallback.dtype(), ": ", field));
    }
  };
  switch (fallback.dtype()) {
    case DType::kFloat: return number(float{});
    case DType::kDouble: return number(double{});
    case DType::kInt32: return number(std::int32_t{});
    case DType::kInt64: return number(std::int64_t{});
    default: out.data<std::string>()[at] = missing ? fallback.data<std::string>()[0] : field;
  }
}

void CsvReader::check_count(std::size_t fields, std::string_view where) const {
  if (fields != format_.defaults.size()) {
    throw InvalidArgumentError(
        cat("Expect ", format_.defaults.size(), " fields but have ", fields, " in ", where));
  }
}

}  // namespace tandem
