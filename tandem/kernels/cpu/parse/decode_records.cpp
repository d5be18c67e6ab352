// Records of text and compressed bytes: DecodeCSV and DecodeCompressed.

#include <string>
#include <vector>

#include "tandem/core/csv.h"
#include "tandem/core/error.h"
#include "tandem/fs/byte_stream.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/string/map_strings.h"

namespace tandem::cpu {
namespace {

void decode_csv(KernelContext& c) {
  const auto& delimiter = c.attr<std::string>("field_delim");
  if (delimiter.size() != 1) {
    throw InvalidArgumentError(cat("field_delim should be only 1 char, got '", delimiter, "'"));
  }
  CsvFormat format;
  format.delimiter = delimiter[0];
  format.quotes = c.attr<bool>("use_quote_delim");
  format.missing = c.attr<std::string>("na_value");
  format.columns = c.attr<std::vector<std::int64_t>>("select_cols");
  format.to_the_end = false;
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.input(i).rank() > 1) {
      throw InvalidArgumentError(
          cat("record_defaults must be scalars or vectors, but that of field ", i - 1,
              " has shape ", c.input(i).shape()));
    }
    format.defaults.push_back(c.input(i));
  }
  const CsvReader reader(std::move(format));
  const auto records = c.input(0).values<std::string>();
  std::vector<Array*> columns;
  for (int i = 0; i < c.num_outputs(); ++i) {
    columns.push_back(&c.allocate_output(i, c.input(0).shape()));
  }
  const double cost = 100.0 * c.num_outputs();
  c.intra_op().parallel_for(
      c.input(0).num_elements(), cost, [&](std::int64_t begin, std::int64_t end) {
        std::vector<std::string> fields;
        for (std::int64_t r = begin; r < end; ++r) {
          const std::string where = "record " + std::to_string(r);
          reader.split(records[static_cast<std::size_t>(r)], fields);
          reader.check_count(fields.size(), where);
          for (std::size_t i = 0; i < fields.size(); ++i) {
            reader.convert(static_cast<int>(i), fields[i], *columns[i], r, where);
          }
        }
      });
}

void decode_compressed(KernelContext& c) {
  constexpr std::size_t kMax = std::size_t{1} << 31;
  const auto& type = c.attr<std::string>("compression_type");
  const fs::Compression compression = fs::compression_of(type);
  map_strings<std::string>(c, 1000, [&](const std::string& s) -> std::string {
    if (compression == fs::Compression::kNone || s.empty()) return s;
    std::string content;
    fs::ByteStream stream(s, "DecodeCompressed", compression);
    for (std::string_view some = stream.peek_some(); !some.empty(); some = stream.peek_some()) {
      content += some;
      stream.consume(some.size());
      if (content.size() > kMax) {
        throw ResourceExhaustedError(cat("The content of a string of ", s.size(),
                                         " bytes is larger than ", kMax, " bytes."));
      }
    }
    return content;
  });
}

const KernelRegistration kCsv{{.op = "DecodeCSV", .run = decode_csv}};
const KernelRegistration kCompressed{{.op = "DecodeCompressed", .run = decode_compressed}};

}  // namespace
}  // namespace tandem::cpu
