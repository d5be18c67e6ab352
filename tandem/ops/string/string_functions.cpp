#include "tandem/ops/string_functions.h"

#include "tandem/core/error.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/ragged_functions.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::strings {
namespace {

Tensor flat(const Tensor& x) { return x.rank() == 1 ? x : tandem::reshape(x, {-1}); }

// The rows of the flattened input, under the axes of the input: of a matrix rows of rows.
RaggedTensor under_axes(RaggedTensor rows, const Tensor& input) {
  const Tensor sizes = shape(input, int64);
  for (int axis = input.rank() - 1; axis > 0; --axis) {
    const Tensor outer = tandem::reduce_prod(sizes[Slice(none, axis)]);
    const Tensor size = sizes[axis];
    rows = RaggedTensor::from_row_splits(
        rows, range(Tensor(std::int64_t{0}), outer * size + 1, size), false);
  }
  return rows;
}

AttrMap decoding(std::string_view encoding, const DecodeOptions& o) {
  return {{"input_encoding", std::string(encoding)},
          {"errors", std::string(o.errors)},
          {"replacement_char", o.replacement_char},
          {"replace_control_characters", o.replace_control_characters}};
}

}  // namespace

SplitResult::operator RaggedTensor() const {
  return RaggedTensor::from_value_rowids(values, indices[{ellipsis, 0}], shape[0]);
}
Tensor SplitResult::to_tensor(const Tensor& default_value) const {
  return RaggedTensor(*this).to_tensor(default_value);
}
std::ostream& operator<<(std::ostream& out, const SplitResult& split) {
  return out << RaggedTensor(split);
}

RaggedTensor split_ragged(const Tensor& input, const Tensor& separator, std::int64_t maxsplit) {
  const Tensor rows = flat(input);
  const SplitResult parts = split(rows, separator, maxsplit);
  return under_axes(RaggedTensor::from_value_rowids(parts.values, parts.indices[{ellipsis, 0}],
                                                    shape(rows, int64)[0]),
                    input);
}

RaggedTensor bytes_split(const Tensor& input) {
  const Tensor rows = flat(input);
  const RaggedTensor places =
      RaggedTensor::from_row_lengths(zeros({0}, int64), cast(length(rows), int64), false);
  const Tensor row = places.value_rowids();
  const Tensor start = gather(places.row_splits(), row);
  const Tensor position =
      range(Tensor(std::int64_t{0}), places.row_splits()[-1], Tensor(std::int64_t{1})) - start;
  const Tensor bytes = substr(gather(rows, row), position, ones_like(position));
  return under_axes(RaggedTensor::from_row_splits(bytes, places.row_splits(), false), input);
}

RaggedTensor unicode_decode(const Tensor& input, StringView encoding,
                            const DecodeOptions& options) {
  auto out = raw_op("UnicodeDecode", {flat(input)}, decoding(encoding, options));
  return under_axes(RaggedTensor::from_row_splits(out[1], out[0], false), input);
}

std::pair<RaggedTensor, RaggedTensor> unicode_decode_with_offsets(const Tensor& input,
                                                                  StringView encoding,
                                                                  const DecodeOptions& options) {
  auto out = raw_op("UnicodeDecodeWithOffsets", {flat(input)}, decoding(encoding, options));
  return {under_axes(RaggedTensor::from_row_splits(out[1], out[0], false), input),
          under_axes(RaggedTensor::from_row_splits(out[2], out[0], false), input)};
}

namespace {

// Each character encoded by itself.
RaggedTensor encoded_alone(const RaggedTensor& characters, std::string_view encoding) {
  const Tensor& all = characters.flat_values();
  const Tensor splits =
      range(Tensor(std::int64_t{0}), cast(size(all), int64) + 1, Tensor(std::int64_t{1}));
  return characters.with_flat_values(
      unicode_encode(RaggedTensor::from_row_splits(all, splits, false), encoding));
}

std::string_view output_of(std::string_view encoding) {
  if (encoding == "UTF-16-BE" || encoding == "UTF-32-BE") return encoding;
  return "UTF-8";
}

}  // namespace

RaggedTensor unicode_split(const Tensor& input, StringView encoding, const DecodeOptions& options) {
  return encoded_alone(unicode_decode(input, encoding, options), output_of(encoding));
}
std::pair<RaggedTensor, RaggedTensor> unicode_split_with_offsets(const Tensor& input,
                                                                 StringView encoding,
                                                                 const DecodeOptions& options) {
  auto [characters, offsets] = unicode_decode_with_offsets(input, encoding, options);
  return {encoded_alone(characters, output_of(encoding)), offsets};
}

Tensor unicode_encode(const RaggedTensor& input, StringView output_encoding, StringView errors,
                      std::int64_t replacement_char) {
  return raw_op("UnicodeEncode", {input.flat_values(), input.nested_row_splits().back()},
                {{"output_encoding", std::string(output_encoding)},
                 {"errors", std::string(errors)},
                 {"replacement_char", replacement_char}})[0];
}
Tensor unicode_encode(const Tensor& input, StringView output_encoding, StringView errors,
                      std::int64_t replacement_char) {
  if (input.rank() == 1) {
    const Tensor row = expand_dims(input, 0);
    return squeeze(unicode_encode(row, output_encoding, errors, replacement_char), {0});
  }
  return unicode_encode(RaggedTensor::from_tensor(input), output_encoding, errors,
                        replacement_char);
}
Tensor unicode_transcode(const Tensor& input, StringView input_encoding, StringView output_encoding,
                         const DecodeOptions& options) {
  AttrMap attrs = decoding(input_encoding, options);
  attrs.set("output_encoding", std::string(output_encoding));
  return raw_op("UnicodeTranscode", {input}, attrs)[0];
}

RaggedTensor ngrams(const RaggedTensor& data, const std::vector<std::int64_t>& widths,
                    const NgramsOptions& o) {
  const std::int64_t padding = !o.use_padding ? 0 : o.padding_width;
  auto out =
      raw_op("StringNGrams", {data.flat_values(), cast(data.nested_row_splits().back(), int64)},
             {{"separator", std::string(o.separator)},
              {"ngram_widths", widths},
              {"left_pad", std::string(o.left_pad)},
              {"right_pad", std::string(o.right_pad)},
              {"pad_width", padding},
              {"preserve_short_sequences", o.preserve_short_sequences}});
  std::vector<Tensor> splits = data.nested_row_splits();
  splits.back() = out[1];
  return RaggedTensor::from_nested_row_splits(out[0], std::move(splits), false);
}
RaggedTensor ngrams(const RaggedTensor& data, std::int64_t width, const NgramsOptions& options) {
  return ngrams(data, std::vector<std::int64_t>{width}, options);
}

}  // namespace tandem::strings
