#include "tandem/ops/string_ops.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

using internal::kUnknown;

// ---- Shapes ----

void join_shape(InferenceContext& c) {
  bool all_scalar = true;
  for (int i = 0; i < c.num_inputs(); ++i) all_scalar = all_scalar && c.input(i).rank() == 0;
  if (all_scalar) return c.set_output(0, PartialShape::scalar());
  PartialShape out;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.input(i).has_rank()) return c.set_output(0, PartialShape::unknown());
    if (c.input(i).rank() != 0) out = out.merge(c.input(i));
  }
  c.set_output(0, out);
}

void split_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 0);
  c.set_output(0, PartialShape({kUnknown, 2}));
  c.set_output(1, PartialShape({kUnknown}));
  c.set_output(2, PartialShape({2}));
}

void regex_shape(InferenceContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) c.require_rank(i, 0);
  c.set_output(0, c.input(0));
}

void substr_shape(InferenceContext& c) {
  const PartialShape &pos = c.input(1), &len = c.input(2);
  if (pos.has_rank() && len.has_rank() && pos.rank() != len.rank()) {
    c.fail(cat("pos and len must have the same rank, but have shapes ", pos.to_string(), " and ",
               len.to_string()));
  }
  if (pos.has_rank() && len.has_rank()) {
    for (int i = 0; i < pos.rank(); ++i) {
      if (pos.dim(i) != kUnknown && len.dim(i) != kUnknown && pos.dim(i) != len.dim(i)) {
        c.fail(cat("pos and len must have the same shape, but have ", pos.to_string(), " and ",
                   len.to_string()));
      }
    }
  }
  if (!c.input(0).has_rank() || !pos.has_rank()) return c.set_output(0, PartialShape::unknown());
  c.set_output(0, broadcast(c.input(0), pos));
}

void reduce_join_shape(InferenceContext& c) {
  const PartialShape& in = c.input(0);
  const bool keep = c.attr<bool>("keep_dims");
  const auto axes = c.input_ints(1);
  if (!in.has_rank()) return c.set_output(0, PartialShape::unknown());
  if (!axes) {
    return c.set_output(0,
                        keep ? PartialShape::unknown_of_rank(in.rank()) : PartialShape::unknown());
  }
  std::vector<bool> reduced(static_cast<std::size_t>(in.rank()));
  for (std::int64_t axis : *axes) {
    if (axis < -in.rank() || axis >= in.rank()) {
      throw OutOfRangeError(cat("Invalid reduction dimension ", axis, " for input with ", in.rank(),
                                " dimension(s)"));
    }
    reduced[static_cast<std::size_t>(axis < 0 ? axis + in.rank() : axis)] = true;
  }
  std::vector<std::int64_t> dims;
  for (int i = 0; i < in.rank(); ++i) {
    if (!reduced[static_cast<std::size_t>(i)]) {
      dims.push_back(in.dim(i));
    } else if (keep) {
      dims.push_back(1);
    }
  }
  c.set_output(0, PartialShape(std::move(dims)));
}

void segment_join_shape(InferenceContext& c) {
  c.require_rank(2, 0);
  const PartialShape &in = c.input(0), &ids = c.input(1);
  if (!in.has_rank() || !ids.has_rank()) return c.set_output(0, PartialShape::unknown());
  if (ids.rank() > in.rank()) c.fail("segment_ids has a higher rank than inputs");
  const auto count = internal::input_int(c, 2);
  std::vector<std::int64_t> dims = {count ? *count : kUnknown};
  if (dims[0] < kUnknown) c.fail("num_segments must not be negative");
  for (int i = 0; i < in.rank(); ++i) {
    if (i < ids.rank()) {
      c.merge_dim(in.dim(i), ids.dim(i), "segment_ids");
    } else {
      dims.push_back(in.dim(i));
    }
  }
  c.set_output(0, PartialShape(std::move(dims)));
}

void ngrams_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 1);
  c.set_output(0, PartialShape({kUnknown}));
  c.set_output(1, c.input(1));
}

void decode_raw_shape(InferenceContext& c) {
  if (!c.input(0).has_rank()) return c.set_output(0, PartialShape::unknown());
  std::vector<std::int64_t> dims = c.input(0).dims();
  dims.push_back(kUnknown);
  c.set_output(0, PartialShape(std::move(dims)));
}

void decode_padded_shape(InferenceContext& c) {
  c.require_rank(1, 0);
  const auto length = internal::input_int(c, 1);
  std::int64_t width = kUnknown;
  if (length) {
    const auto size = static_cast<std::int64_t>(dtype_size(c.attr<DType>("out_type")));
    if (*length <= 0) c.fail(cat("`fixed_length` (", *length, ") must be greater than zero."));
    if (*length % size != 0) {
      c.fail(cat("`fixed_length` (", *length, ") must be a multiple of the size of out_type, ",
                 size, "."));
    }
    width = *length / size;
  }
  if (!c.input(0).has_rank()) return c.set_output(0, PartialShape::unknown());
  std::vector<std::int64_t> dims = c.input(0).dims();
  dims.push_back(width);
  c.set_output(0, PartialShape(std::move(dims)));
}

// ---- Declarations ----

const OpRegistration kJoin{{.name = "StringJoin",
                            .inputs = "inputs: N * string",
                            .outputs = "output: string",
                            .attrs = "N: int >= 0; separator: string = ''",
                            .shape = join_shape,
                            .gradient = not_differentiable,
                            .doc = "The inputs' strings joined, element by element."}};

const OpRegistration kSplit{{.name = "StringSplit",
                             .inputs = "input: string, delimiter: string",
                             .outputs = "indices: int64, values: string, shape: int64",
                             .attrs = "skip_empty: bool = true",
                             .shape = split_shape,
                             .gradient = not_differentiable,
                             .doc = "The pieces of strings between any of the delimiter's bytes; "
                                    "single bytes if it is empty."}};

const OpRegistration kSplitV2{{.name = "StringSplitV2",
                               .inputs = "input: string, sep: string",
                               .outputs = "indices: int64, values: string, shape: int64",
                               .attrs = "maxsplit: int = -1",
                               .shape = split_shape,
                               .gradient = not_differentiable,
                               .doc = "The pieces of strings between separators, or between white "
                                      "space if the separator is empty."}};

const OpRegistration kAsString{
    {.name = "AsString",
     .inputs = "input: T",
     .outputs = "output: string",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
              "uint32, uint64, complex64, complex128, bool, variant, string}; precision: int = -1; "
              "scientific: bool = false; shortest: bool = false; width: int = -1; "
              "fill: string = ''",
     .shape = shapes::unchanged,
     .gradient = not_differentiable,
     .doc = "Each element as text, formatted as by printf."}};

const OpRegistration kToNumber{
    {.name = "StringToNumber",
     .inputs = "string_tensor: string",
     .outputs = "output: out_type",
     .attrs = "out_type: {float, double, int32, int64, uint32, uint64} = float",
     .shape = shapes::unchanged,
     .gradient = not_differentiable,
     .doc = "Each string read as a number."}};

const OpRegistration kRegexReplace{{.name = "RegexReplace",
                                    .inputs = "input: string, pattern: string, rewrite: string",
                                    .outputs = "output: string",
                                    .attrs = "replace_global: bool = true",
                                    .shape = regex_shape,
                                    .gradient = not_differentiable,
                                    .doc = "Matches of the pattern replaced: all, or the first."}};

const OpRegistration kStaticRegexReplace{
    {.name = "StaticRegexReplace",
     .inputs = "input: string",
     .outputs = "output: string",
     .attrs = "pattern: string; rewrite: string; replace_global: bool = true",
     .shape = shapes::unchanged,
     .gradient = not_differentiable,
     .doc = "RegexReplace with a pattern that is an attribute."}};

const OpRegistration kRegexFullMatch{{.name = "RegexFullMatch",
                                      .inputs = "input: string, pattern: string",
                                      .outputs = "output: bool",
                                      .shape = regex_shape,
                                      .gradient = not_differentiable,
                                      .doc = "Whether all of each string matches the pattern."}};

const OpRegistration kStaticRegexFullMatch{
    {.name = "StaticRegexFullMatch",
     .inputs = "input: string",
     .outputs = "output: bool",
     .attrs = "pattern: string",
     .shape = shapes::unchanged,
     .gradient = not_differentiable,
     .doc = "RegexFullMatch with a pattern that is an attribute."}};

const OpRegistration kSubstr{
    {.name = "Substr",
     .inputs = "input: string, pos: T, len: T",
     .outputs = "output: string",
     .attrs = "T: {int32, int64}; unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
     .shape = substr_shape,
     .gradient = not_differentiable,
     .doc = "A part of each string; positions and lengths broadcast with the strings."}};

const OpRegistration kLength{{.name = "StringLength",
                              .inputs = "input: string",
                              .outputs = "output: int32",
                              .attrs = "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
                              .shape = shapes::unchanged,
                              .gradient = not_differentiable,
                              .doc = "The length of each string in bytes or characters."}};

const OpRegistration kLower{{.name = "StringLower",
                             .inputs = "input: string",
                             .outputs = "output: string",
                             .attrs = "encoding: string = ''",
                             .shape = shapes::unchanged,
                             .gradient = not_differentiable,
                             .doc = "Capitals as small letters: of ASCII, or of UTF-8."}};

const OpRegistration kUpper{{.name = "StringUpper",
                             .inputs = "input: string",
                             .outputs = "output: string",
                             .attrs = "encoding: string = ''",
                             .shape = shapes::unchanged,
                             .gradient = not_differentiable,
                             .doc = "Small letters as capitals: of ASCII, or of UTF-8."}};

const OpRegistration kStrip{{.name = "StringStrip",
                             .inputs = "input: string",
                             .outputs = "output: string",
                             .shape = shapes::unchanged,
                             .gradient = not_differentiable,
                             .doc = "Each string without white space at its ends."}};

const OpRegistration kFormat{
    {.name = "StringFormat",
     .inputs = "inputs: T",
     .outputs = "output: string",
     .attrs = "T: list(type) >= 0; template: string = '%s'; placeholder: string = '%s'; "
              "summarize: int = 3",
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .doc = "The template with its placeholders replaced by the inputs, printed."}};

const OpRegistration kHash{{.name = "StringToHashBucket",
                            .inputs = "string_tensor: string",
                            .outputs = "output: int64",
                            .attrs = "num_buckets: int >= 1",
                            .shape = shapes::unchanged,
                            .gradient = not_differentiable,
                            .doc = "A 64-bit hash of each string modulo num_buckets."}};

const OpRegistration kHashFast{{.name = "StringToHashBucketFast",
                                .inputs = "input: string",
                                .outputs = "output: int64",
                                .attrs = "num_buckets: int >= 1",
                                .shape = shapes::unchanged,
                                .gradient = not_differentiable,
                                .doc = "FarmHash's Fingerprint64 of each string modulo "
                                       "num_buckets."}};

const OpRegistration kHashStrong{{.name = "StringToHashBucketStrong",
                                  .inputs = "input: string",
                                  .outputs = "output: int64",
                                  .attrs = "num_buckets: int >= 1; key: list(int)",
                                  .shape = shapes::unchanged,
                                  .gradient = not_differentiable,
                                  .doc = "SipHash of each string with a key of two numbers, modulo "
                                         "num_buckets."}};

const OpRegistration kReduceJoin{{.name = "ReduceJoin",
                                  .inputs = "inputs: string, reduction_indices: int32",
                                  .outputs = "output: string",
                                  .attrs = "keep_dims: bool = false; separator: string = ''",
                                  .shape = reduce_join_shape,
                                  .gradient = not_differentiable,
                                  .traits = {.host_inputs = 0b10},
                                  .doc = "Strings joined along axes, in the order of these."}};

const OpRegistration kSegmentJoin{
    {.name = "UnsortedSegmentJoin",
     .inputs = "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments",
     .outputs = "output: string",
     .attrs = "separator: string = ''; Tindices: {int32, int64}; "
              "Tnumsegments: {int32, int64} = int32",
     .shape = segment_join_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b100},
     .doc = "The strings of each segment joined."}};

const OpRegistration kNGrams{
    {.name = "StringNGrams",
     .inputs = "data: string, data_splits: Tsplits",
     .outputs = "ngrams: string, ngrams_splits: Tsplits",
     .attrs = "separator: string; ngram_widths: list(int) >= 0; left_pad: string; "
              "right_pad: string; pad_width: int; preserve_short_sequences: bool; "
              "Tsplits: index = int64",
     .shape = ngrams_shape,
     .gradient = not_differentiable,
     .doc = "Runs of neighbouring tokens of each row of a ragged array, joined."}};

const OpRegistration kEncode{{.name = "EncodeBase64",
                              .inputs = "input: string",
                              .outputs = "output: string",
                              .attrs = "pad: bool = false",
                              .shape = shapes::unchanged,
                              .gradient = not_differentiable,
                              .doc = "Each string in web-safe base64."}};

const OpRegistration kDecode{{.name = "DecodeBase64",
                              .inputs = "input: string",
                              .outputs = "output: string",
                              .shape = shapes::unchanged,
                              .gradient = not_differentiable,
                              .doc = "What web-safe base64 stands for."}};

const OpRegistration kDecodeRaw{
    {.name = "DecodeRaw",
     .inputs = "bytes: string",
     .outputs = "output: out_type",
     .attrs = "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, "
              "complex64, complex128, bool, bfloat16}; little_endian: bool = true",
     .shape = decode_raw_shape,
     .gradient = not_differentiable,
     .doc = "The bytes of strings of equal length as numbers, along one more axis."}};

const OpRegistration kDecodePaddedRaw{
    {.name = "DecodePaddedRaw",
     .inputs = "input_bytes: string, fixed_length: int32",
     .outputs = "output: out_type",
     .attrs = "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, "
              "bfloat16}; little_endian: bool = true",
     .shape = decode_padded_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b10},
     .doc = "The bytes of strings, cut or filled with zeros to fixed_length, as numbers."}};

const char* unit_name(strings::Unit unit) {
  return unit == strings::Unit::kByte ? "BYTE" : "UTF8_CHAR";
}

}  // namespace

namespace strings {

Tensor join(const std::vector<Tensor>& inputs, StringView separator) {
  return call1(kJoin, inputs, {{"separator", separator}});
}

SplitResult split(Tensor input, Tensor separator, std::int64_t maxsplit) {
  if (input.rank() == 0) input = reshape(std::move(input), {1});
  auto parts = call(kSplitV2, {std::move(input), std::move(separator)}, {{"maxsplit", maxsplit}});
  return {std::move(parts[0]), std::move(parts[1]), std::move(parts[2])};
}

Tensor substr(Tensor input, Tensor pos, Tensor len, Unit unit) {
  return call1(kSubstr, {std::move(input), std::move(pos), std::move(len)},
               {{"unit", unit_name(unit)}});
}

Tensor length(Tensor input, Unit unit) {
  return call1(kLength, {std::move(input)}, {{"unit", unit_name(unit)}});
}

Tensor lower(Tensor input, StringView encoding) {
  return call1(kLower, {std::move(input)}, {{"encoding", encoding}});
}

Tensor upper(Tensor input, StringView encoding) {
  return call1(kUpper, {std::move(input)}, {{"encoding", encoding}});
}

Tensor strip(Tensor input) { return call1(kStrip, {std::move(input)}); }

Tensor as_string(Tensor input, const AsStringOptions& options) {
  return call1(kAsString, {std::move(input)},
               {{"precision", options.precision},
                {"scientific", options.scientific},
                {"shortest", options.shortest},
                {"width", options.width},
                {"fill", options.fill}});
}

Tensor to_number(Tensor input, DType out_type) {
  return call1(kToNumber, {std::move(input)}, {{"out_type", out_type}});
}

Tensor format(StringView text, const std::vector<Tensor>& inputs, StringView placeholder,
              std::int64_t summarize) {
  return call1(kFormat, inputs,
               {{"template", text}, {"placeholder", placeholder}, {"summarize", summarize}});
}

Tensor regex_replace(Tensor input, Tensor pattern, Tensor rewrite, bool replace_global) {
  return call1(kRegexReplace, {std::move(input), std::move(pattern), std::move(rewrite)},
               {{"replace_global", replace_global}});
}

Tensor regex_full_match(Tensor input, Tensor pattern) {
  return call1(kRegexFullMatch, {std::move(input), std::move(pattern)});
}

Tensor to_hash_bucket_fast(Tensor input, std::int64_t num_buckets) {
  return call1(kHashFast, {std::move(input)}, {{"num_buckets", num_buckets}});
}

Tensor to_hash_bucket_strong(Tensor input, std::int64_t num_buckets,
                             const std::vector<std::int64_t>& key) {
  return call1(kHashStrong, {std::move(input)}, {{"num_buckets", num_buckets}, {"key", key}});
}

Tensor to_hash_bucket(Tensor input, std::int64_t num_buckets) {
  return call1(kHash, {std::move(input)}, {{"num_buckets", num_buckets}});
}

Tensor reduce_join(Tensor input, Tensor axis, bool keep_dims, StringView separator) {
  return call1(kReduceJoin, {std::move(input), std::move(axis)},
               {{"keep_dims", keep_dims}, {"separator", separator}});
}

Tensor unsorted_segment_join(Tensor input, Tensor segment_ids, Tensor num_segments,
                             StringView separator) {
  return call1(kSegmentJoin, {std::move(input), std::move(segment_ids), std::move(num_segments)},
               {{"separator", separator}});
}

}  // namespace strings

namespace io {

Tensor encode_base64(Tensor input, bool pad) {
  return call1(kEncode, {std::move(input)}, {{"pad", pad}});
}

Tensor decode_base64(Tensor input) { return call1(kDecode, {std::move(input)}); }

Tensor decode_raw(Tensor bytes, DType out_type, bool little_endian) {
  return call1(kDecodeRaw, {std::move(bytes)},
               {{"out_type", out_type}, {"little_endian", little_endian}});
}

Tensor decode_padded_raw(Tensor bytes, Tensor fixed_length, DType out_type, bool little_endian) {
  return call1(kDecodePaddedRaw, {std::move(bytes), std::move(fixed_length)},
               {{"out_type", out_type}, {"little_endian", little_endian}});
}

}  // namespace io
}  // namespace tandem
