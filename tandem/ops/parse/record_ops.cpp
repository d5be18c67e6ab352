#include "tandem/ops/record_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

void csv_shape(InferenceContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.input(i).has_rank() && c.input(i).rank() > 1) {
      c.fail("Shape of a default must be a length-0 or length-1 vector, or a scalar.");
    }
    if (c.input(i).rank() == 1 && c.input(i).dim(0) > 1) {
      c.fail("Shape of a default must be a length-0 or length-1 vector, or a scalar.");
    }
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
}

const OpRegistration kCsv{
    {.name = "DecodeCSV",
     .inputs = "records: string, record_defaults: OUT_TYPE",
     .outputs = "output: OUT_TYPE",
     .attrs = "OUT_TYPE: list({float, double, int32, int64, string}) >= 1; field_delim: string = "
              "','; use_quote_delim: bool = true; na_value: string = ''; select_cols: list(int) = "
              "[]",
     .shape = csv_shape,
     .gradient = not_differentiable,
     .doc = "The fields of records of comma-separated values, one tensor a column. A default of no "
            "value makes its field required."}};

const OpRegistration kCompressed{{.name = "DecodeCompressed",
                                  .inputs = "bytes: string",
                                  .outputs = "output: string",
                                  .attrs = "compression_type: string = ''",
                                  .shape = shapes::unchanged,
                                  .gradient = not_differentiable,
                                  .doc = "What strings compressed with GZIP or ZLIB hold."}};

}  // namespace

namespace io {

std::vector<Tensor> decode_csv(Tensor records, const std::vector<Tensor>& record_defaults,
                               const DecodeCsvOptions& options) {
  std::vector<Tensor> inputs = {std::move(records)};
  inputs.insert(inputs.end(), record_defaults.begin(), record_defaults.end());
  return call(kCsv, inputs,
              {{"field_delim", options.field_delim},
               {"use_quote_delim", options.use_quote_delim},
               {"na_value", options.na_value},
               {"select_cols", options.select_cols}});
}

Tensor decode_compressed(Tensor bytes, StringView compression_type) {
  return call1(kCompressed, {std::move(bytes)}, {{"compression_type", compression_type}});
}

}  // namespace io
}  // namespace tandem
