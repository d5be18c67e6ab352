// Strings of Unicode and the numbers of their characters. Called by name (raw_op, imported
// graphs).

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/sizes.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::vector_of;

void decode_shape(InferenceContext& c) {
  const PartialShape& input = c.input(0);
  std::int64_t count = input.has_rank() ? 1 : kUnknown;
  for (int i = 0; input.has_rank() && i < input.rank(); ++i) {
    count = internal::multiply_sizes(count, input.dim(i));
  }
  c.set_output(0, vector_of(internal::add_sizes(count, 1)));
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, vector_of(kUnknown));
}

void encode_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 1);
  const std::int64_t splits = c.input(1).dim(0);
  c.set_output(0, vector_of(splits > 0 ? splits - 1 : kUnknown));
}

constexpr const char* kDecodeAttrs =
    "input_encoding: string; errors: {'strict', 'replace', 'ignore'} = 'replace'; "
    "replacement_char: int = 65533; replace_control_characters: bool = false; "
    "Tsplits: {int32, int64} = int64";

const OpRegistration kDecode{
    {.name = "UnicodeDecode",
     .inputs = "input: string",
     .outputs = "row_splits: Tsplits, char_values: int32",
     .attrs = kDecodeAttrs,
     .shape = decode_shape,
     .gradient = not_differentiable,
     .doc = "The numbers of the characters of each string, one ragged row a string. Encodings: "
            "UTF-8, UTF-16 and UTF-32 (also -BE and -LE), US-ASCII and ISO-8859-1."}};

const OpRegistration kDecodeWithOffsets{
    {.name = "UnicodeDecodeWithOffsets",
     .inputs = "input: string",
     .outputs = "row_splits: Tsplits, char_values: int32, char_to_byte_starts: int64",
     .attrs = kDecodeAttrs,
     .shape = decode_shape,
     .gradient = not_differentiable,
     .doc = "As UnicodeDecode, with the byte at which each character begins."}};

const OpRegistration kEncode{{.name = "UnicodeEncode",
                              .inputs = "input_values: int32, input_splits: Tsplits",
                              .outputs = "output: string",
                              .attrs =
                                  "errors: {'ignore', 'replace', 'strict'} = 'replace'; "
                                  "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}; "
                                  "replacement_char: int = 65533; Tsplits: {int32, int64} = int64",
                              .shape = encode_shape,
                              .gradient = not_differentiable,
                              .doc = "A string of the characters of each ragged row."}};

const OpRegistration kTranscode{
    {.name = "UnicodeTranscode",
     .inputs = "input: string",
     .outputs = "output: string",
     .attrs = "input_encoding: string; output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}; "
              "errors: {'strict', 'replace', 'ignore'} = 'replace'; "
              "replacement_char: int = 65533; replace_control_characters: bool = false",
     .shape = shapes::unchanged,
     .gradient = not_differentiable,
     .doc = "Each string in another encoding; those that it may be in are UnicodeDecode's."}};

}  // namespace
}  // namespace tandem
