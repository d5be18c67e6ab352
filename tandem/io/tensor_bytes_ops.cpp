// SerializeTensor and ParseTensor: tensors as serialized TensorProtos.

#include <cstring>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_decl.h"
#include "tandem/io/example.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/internal/wire.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::io {
namespace {

// A few bytes may stand for a tensor of equal elements; so large a one is refused.
constexpr std::size_t kMaxFilled = std::size_t{1} << 30;

void serialize(KernelContext& c) {
  const Array& value = c.input(0);
  proto::TensorProto message;
  if (value.dtype() == DType::kString || value.dtype() == DType::kVariant ||
      value.dtype() == DType::kResource) {
    encode_tensor(value, message);
  } else {  // always the plain bytes, as TensorFlow does
    proto::TensorProto head;
    encode_tensor(Array(value.dtype(), Shape{0}), head);
    message.dtype = head.dtype;
    message.tensor_content.assign(static_cast<const char*>(value.raw_data()), value.num_bytes());
    encode_shape(PartialShape(value.shape()), message.tensor_shape.make());
  }
  c.allocate_output(0, Shape{}).data<std::string>()[0] = proto::WireWriter::write(message);
}

void parse(KernelContext& c) {
  const Array& serialized = c.input(0);
  if (serialized.rank() != 0) {
    throw InvalidArgumentError(
        cat("Expected `serialized` to be a scalar, got shape: ", serialized.shape()));
  }
  const std::string& bytes = serialized.values<std::string>()[0];
  proto::TensorProto message;
  try {
    proto::WireReader(bytes).read(message);
  } catch (const DataLossError& error) {
    throw InvalidArgumentError(cat("Could not parse `serialized` as TensorProto (", bytes.size(),
                                   " bytes): ", error.what()));
  }
  const auto dtype = dtype_of_number(static_cast<int>(message.dtype));
  if (!dtype) {
    throw InvalidArgumentError(cat("Cannot parse tensor from proto: its dtype is ",
                                   dtype_number_name(static_cast<int>(message.dtype)), "."));
  }
  if (*dtype != c.output_dtype(0)) {
    throw InvalidArgumentError(cat("Type mismatch between parsed tensor (", *dtype, ") and dtype (",
                                   c.output_dtype(0), ")"));
  }
  DecodedTensor tensor = decode_tensor(message, kMaxFilled);
  if (tensor.shape) {
    throw ResourceExhaustedError(cat("The ", bytes.size(), " bytes of `serialized` stand for a ",
                                     *dtype, " tensor of shape ", *tensor.shape, ", larger than ",
                                     kMaxFilled, " bytes."));
  }
  c.set_output(0, std::move(tensor.value));
}

void parse_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  c.set_output(0, PartialShape::unknown());
}

const OpRegistration kSerialize{{.name = "SerializeTensor",
                                 .inputs = "tensor: T",
                                 .outputs = "serialized: string",
                                 .attrs = "T: type",
                                 .shape = shapes::scalar,
                                 .gradient = not_differentiable,
                                 .doc = "A tensor as a serialized TensorProto."}};
const OpRegistration kParse{{.name = "ParseTensor",
                             .inputs = "serialized: string",
                             .outputs = "output: out_type",
                             .attrs = "out_type: type",
                             .shape = parse_shape,
                             .gradient = not_differentiable,
                             .traits = {.owns_output_memory = 0b1},
                             .doc = "The tensor that a serialized TensorProto holds."}};

const KernelRegistration kSerializeKernel{{.op = "SerializeTensor", .run = serialize}};
const KernelRegistration kParseKernel{{.op = "ParseTensor", .run = parse}};

}  // namespace

Tensor serialize_tensor(Tensor tensor) { return call1(kSerialize, {std::move(tensor)}); }

Tensor parse_tensor(Tensor serialized, DType out_type) {
  return call1(kParse, {std::move(serialized)}, {{"out_type", out_type}});
}

}  // namespace tandem::io
