#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

/// Records of text, and compressed bytes, as tensors.
namespace tandem::io {

struct DecodeCsvOptions {
  String field_delim = ",";                    ///< one character
  bool use_quote_delim = true;                 ///< fields may stand in double quotes
  String na_value = {};                        ///< a missing value, as an empty field is
  std::vector<std::int64_t> select_cols = {};  ///< the columns wanted, increasing; empty: all
};
/// Each record's fields, one tensor a column with the records' shape. `record_defaults` has one
/// tensor a column: its dtype (float, double, int32, int64 or string) and the value where one is
/// missing; an empty vector makes it required. Records end with their string and hold no line end
/// outside of quotes. Throws InvalidArgumentError for fields that cannot be read.
TANDEM_EXPORT std::vector<Tensor> decode_csv(Tensor records,
                                             const std::vector<Tensor>& record_defaults,
                                             const DecodeCsvOptions& options = {});

/// The content of compressed strings: "GZIP", "ZLIB" or "" (as it is). DataLossError for damaged
/// ones.
TANDEM_EXPORT Tensor decode_compressed(Tensor bytes, StringView compression_type);

}  // namespace tandem::io
