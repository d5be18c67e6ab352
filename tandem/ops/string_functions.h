#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/ragged_tensor.h"
#include "tandem/ops/string_ops.h"
#include "tandem/runtime/tensor.h"

/// Functions of strings that have ragged results. Encodings: "UTF-8", "UTF-16-BE", "UTF-32-BE"; for
/// decoding also those that ICU knows by name here (docs/ops.md, UnicodeDecode).
namespace tandem::strings {

struct DecodeOptions {
  StringView errors = "replace";  ///< or "strict", "ignore"
  std::int64_t replacement_char = 65533;
  bool replace_control_characters = false;
};

/// Pieces between separators (blanks by default), as a ragged tensor; a scalar gives one row.
TANDEM_EXPORT RaggedTensor split_ragged(const Tensor& input, const Tensor& separator = Tensor(""),
                                        std::int64_t maxsplit = -1);
/// Each byte as a string of its own.
TANDEM_EXPORT RaggedTensor bytes_split(const Tensor& input);
/// Each character as a string of its own.
TANDEM_EXPORT RaggedTensor unicode_split(const Tensor& input, StringView input_encoding,
                                         const DecodeOptions& options = {});
/// … and the bytes at which they begin.
TANDEM_EXPORT std::pair<RaggedTensor, RaggedTensor> unicode_split_with_offsets(
    const Tensor& input, StringView input_encoding, const DecodeOptions& options = {});
/// The characters' numbers.
TANDEM_EXPORT RaggedTensor unicode_decode(const Tensor& input, StringView input_encoding,
                                          const DecodeOptions& options = {});
TANDEM_EXPORT std::pair<RaggedTensor, RaggedTensor> unicode_decode_with_offsets(
    const Tensor& input, StringView input_encoding, const DecodeOptions& options = {});
/// A string of each row of characters.
TANDEM_EXPORT Tensor unicode_encode(const RaggedTensor& input, StringView output_encoding,
                                    StringView errors = "replace",
                                    std::int64_t replacement_char = 65533);
/// A vector is one string, a matrix one a row.
TANDEM_EXPORT Tensor unicode_encode(const Tensor& input, StringView output_encoding,
                                    StringView errors = "replace",
                                    std::int64_t replacement_char = 65533);
TANDEM_EXPORT Tensor unicode_transcode(const Tensor& input, StringView input_encoding,
                                       StringView output_encoding,
                                       const DecodeOptions& options = {});

struct NgramsOptions {
  StringView separator = " ";
  StringView left_pad = "";
  StringView right_pad = "";
  bool use_padding = false;         ///< pad with left_pad and right_pad
  std::int64_t padding_width = -1;  ///< so many at most; -1: the width less 1
  bool preserve_short_sequences = false;
};
/// Runs of neighbouring tokens, of these widths, joined.
TANDEM_EXPORT RaggedTensor ngrams(const RaggedTensor& data,
                                  const std::vector<std::int64_t>& ngram_widths,
                                  const NgramsOptions& options = {});
TANDEM_EXPORT RaggedTensor ngrams(const RaggedTensor& data, std::int64_t ngram_width,
                                  const NgramsOptions& options = {});

}  // namespace tandem::strings
