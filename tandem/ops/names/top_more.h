#pragma once

// Names at the top of TensorFlow that have to do with the runtime, and namespaces of names: see
// tandem/ops/names/math.h.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/distributed_variable.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/ops/sparse_ops.h"
#include "tandem/ops/variable_creator.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem {

inline constexpr DType qint8 = DType::kQint8;
inline constexpr DType quint8 = DType::kQuint8;
inline constexpr DType qint16 = DType::kQint16;
inline constexpr DType quint16 = DType::kQuint16;
inline constexpr DType qint32 = DType::kQint32;

/// False while the thread traces a function.
inline bool executing_eagerly() { return thread_context().trace == nullptr; }
/// True while the thread traces a function.
inline bool inside_function() { return !executing_eagerly(); }
/// Prefix of the names of nodes made now, "a/b"; "" at the top.
inline std::string get_current_name_scope() {
  std::string name = thread_context().name_scope;
  if (!name.empty() && name.back() == '/') name.pop_back();
  return name;
}
/// Ops called in the block run at once, even while a function is being traced.
class init_scope {  // NOLINT: TensorFlow's name
 public:
  init_scope() : eager_(nullptr) {}

 private:
  TraceScope eager_;
  StopRecording unrecorded_;
};
/// The value of a tensor if it is known now: not of one that a function being traced computes.
inline std::optional<Tensor> get_static_value(const Tensor& tensor) {
  if (!tensor.defined() || tensor.is_symbolic()) return std::nullopt;
  return tensor;
}
/// Does nothing: ops with effects run in the order of the program.
inline void no_op() {}
/// Does nothing: ops with effects run in the order of the program, all of them.
template <class... T>
void group(const T&...) {}
/// The tensors as they are; by the time they are used the ops with effects before have run.
inline std::vector<Tensor> tuple(std::vector<Tensor> tensors) { return tensors; }
/// Its input.
inline Tensor guarantee_const(Tensor input) { return input; }

struct EditDistanceOptions {
  bool normalize = true;  ///< divided by the length of the truth
};
/// The Levenshtein distance between sequences, those in the last axis of two sparse tensors of one
/// shape, apart from that axis: float, dense, without it.
inline Tensor edit_distance(const sparse::SparseTensor& hypothesis,
                            const sparse::SparseTensor& truth,
                            const EditDistanceOptions& options = {}) {
  return raw_op("EditDistance",
                {hypothesis.indices, hypothesis.values, hypothesis.dense_shape, truth.indices,
                 truth.values, truth.dense_shape},
                {{"normalize", options.normalize}})[0];
}

/// Patches of volumes [batch, depth, height, width, channels]: the values of each patch become
/// channels. ksizes and strides have five entries, of which the first and last are 1.
inline Tensor extract_volume_patches(Tensor input, std::vector<std::int64_t> ksizes,
                                     std::vector<std::int64_t> strides,
                                     const std::string& padding) {
  return raw_op(
      "ExtractVolumePatches", {std::move(input)},
      {{"ksizes", std::move(ksizes)}, {"strides", std::move(strides)}, {"padding", padding}})[0];
}

/// tf.dtypes: dtypes are at the top too.
namespace dtypes {

using tandem::bfloat16;
using tandem::boolean;
using tandem::cast;
using tandem::complex;
using tandem::complex128;
using tandem::complex64;
using tandem::DType;
using tandem::float16;
using tandem::float32;
using tandem::float64;
using tandem::int16;
using tandem::int32;
using tandem::int64;
using tandem::int8;
using tandem::saturate_cast;
using tandem::uint16;
using tandem::uint32;
using tandem::uint64;
using tandem::uint8;

}  // namespace dtypes

/// tf.errors: the classes are at the top too.
namespace errors {

using OpError = Error;
using tandem::AbortedError;
using tandem::AlreadyExistsError;
using tandem::CancelledError;
using tandem::DataLossError;
using tandem::DeadlineExceededError;
using tandem::FailedPreconditionError;
using tandem::InternalError;
using tandem::InvalidArgumentError;
using tandem::NotFoundError;
using tandem::OutOfRangeError;
using tandem::PermissionDeniedError;
using tandem::ResourceExhaustedError;
using tandem::UnauthenticatedError;
using tandem::UnavailableError;
using tandem::UnimplementedError;
using tandem::UnknownError;

}  // namespace errors
}  // namespace tandem
