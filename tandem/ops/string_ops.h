#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

namespace tandem {
class RaggedTensor;
}

/// Ops on strings, which are bytes: where characters count, they are those of UTF-8.
namespace tandem::strings {

/// The unit that lengths and positions count in.
enum class Unit { kByte, kUtf8Char };

/// The strings of all inputs, element by element, with `separator` between them. Scalars are
/// joined with every element; all other shapes must be equal.
TANDEM_EXPORT Tensor join(const std::vector<Tensor>& inputs, StringView separator = "");

/// The pieces of all strings of a vector (a scalar counts as one string): where each belongs (row
/// and place, int64 [n, 2]), the pieces, and the rows' number and greatest length.
struct TANDEM_EXPORT SplitResult {
  Tensor indices;
  Tensor values;
  Tensor shape;

  /// What TensorFlow's split returns: the pieces of each string as a row.
  operator RaggedTensor() const;
  /// Rows filled up to the longest.
  Tensor to_tensor(const Tensor& default_value = Tensor("")) const;
};
TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const SplitResult& split);
/// Splits at `separator`, or at white space if that is empty; at most `maxsplit` times unless -1.
TANDEM_EXPORT SplitResult split(Tensor input, Tensor separator = Tensor(""),
                                std::int64_t maxsplit = -1);

/// Strings from [pos, pos + len) of each, in bytes or characters; a negative pos counts from the
/// end. Throws InvalidArgumentError where pos lies outside of a string.
TANDEM_EXPORT Tensor substr(Tensor input, Tensor pos, Tensor len, Unit unit = Unit::kByte);
/// int32, of the input's shape.
TANDEM_EXPORT Tensor length(Tensor input, Unit unit = Unit::kByte);
/// ASCII letters changed; all letters if `encoding` is "utf-8".
TANDEM_EXPORT Tensor lower(Tensor input, StringView encoding = "");
TANDEM_EXPORT Tensor upper(Tensor input, StringView encoding = "");
/// Without white space at both ends.
TANDEM_EXPORT Tensor strip(Tensor input);

/// What `as_string` takes besides the values: see printf.
struct AsStringOptions {
  std::int64_t precision = -1;
  bool scientific = false;
  bool shortest = false;
  std::int64_t width = -1;
  String fill = "";
};
/// Each number, bool or string as text.
TANDEM_EXPORT Tensor as_string(Tensor input, const AsStringOptions& options = {});
/// Each string read as a number; throws InvalidArgumentError where it is none.
TANDEM_EXPORT Tensor to_number(Tensor input, DType out_type = DType::kFloat);
/// The template with each placeholder replaced by one of the tensors, as TensorFlow prints them.
TANDEM_EXPORT Tensor format(StringView text, const std::vector<Tensor>& inputs,
                            StringView placeholder = "{}", std::int64_t summarize = 3);

/// Matches of `pattern` (RE2 syntax) replaced; `rewrite` may hold \1 to \9.
TANDEM_EXPORT Tensor regex_replace(Tensor input, Tensor pattern, Tensor rewrite,
                                   bool replace_global = true);
/// bool: whether the whole string matches.
TANDEM_EXPORT Tensor regex_full_match(Tensor input, Tensor pattern);

/// Hashes modulo num_buckets, int64: FarmHash's Fingerprint64, or SipHash with a key of two
/// numbers.
TANDEM_EXPORT Tensor to_hash_bucket_fast(Tensor input, std::int64_t num_buckets);
TANDEM_EXPORT Tensor to_hash_bucket_strong(Tensor input, std::int64_t num_buckets,
                                           const std::vector<std::int64_t>& key);
TANDEM_EXPORT Tensor to_hash_bucket(Tensor input, std::int64_t num_buckets);

/// Joins along axes, in the order in which these are given.
TANDEM_EXPORT Tensor reduce_join(Tensor input, Tensor axis, bool keep_dims = false,
                                 StringView separator = "");
/// The strings of each segment joined in order.
TANDEM_EXPORT Tensor unsorted_segment_join(Tensor input, Tensor segment_ids, Tensor num_segments,
                                           StringView separator = "");

}  // namespace tandem::strings

namespace tandem::io {

/// Web-safe base64: `-` and `_` for the last two digits.
TANDEM_EXPORT Tensor encode_base64(Tensor input, bool pad = false);
TANDEM_EXPORT Tensor decode_base64(Tensor input);
/// The bytes of strings of equal length as numbers: one more axis.
TANDEM_EXPORT Tensor decode_raw(Tensor bytes, DType out_type, bool little_endian = true);
/// Decodes strings that are cut or filled with zeros to fixed_length bytes.
TANDEM_EXPORT Tensor decode_padded_raw(Tensor bytes, Tensor fixed_length, DType out_type,
                                       bool little_endian = true);

}  // namespace tandem::io
