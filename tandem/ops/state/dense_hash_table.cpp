#include "tandem/ops/dense_hash_table.h"

#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/trace.h"

namespace tandem::lookup::experimental {
namespace {

Tensor as(const char* what, const Tensor& given, DType dtype) {
  if (given.dtype() == dtype) return given;
  const bool numbers = is_integer(given.dtype()) || is_floating(given.dtype());
  if (given.is_symbolic() || !numbers || !(is_integer(dtype) || is_floating(dtype))) {
    throw InvalidArgumentError(
        cat("Dtype of argument `", what, "` must be ", dtype, ", received: ", given.dtype(), "."));
  }
  return cast(given, dtype);
}

}  // namespace

DenseHashTable::DenseHashTable(DType key_dtype, DType value_dtype, Tensor default_value,
                               Tensor empty_key, Tensor deleted_key,
                               std::int64_t initial_num_buckets)
    : key_(key_dtype), value_(value_dtype) {
  const TraceScope eager(nullptr);
  const StopRecording unrecorded;
  default_ = as("default_value", default_value, value_dtype);
  handle_ =
      raw_op("AnonymousMutableDenseHashTable",
             {as("empty_key", empty_key, key_dtype), as("deleted_key", deleted_key, key_dtype)},
             {{"key_dtype", key_dtype},
              {"value_dtype", value_dtype},
              {"value_shape", PartialShape(default_.shape())},
              {"initial_num_buckets", initial_num_buckets}})[0];
}

Tensor DenseHashTable::lookup(const Tensor& keys) const {
  return raw_op("LookupTableFindV2", {handle_, as("keys", keys, key_), default_})[0];
}

void DenseHashTable::insert(const Tensor& keys, const Tensor& values) const {
  raw_op("LookupTableInsertV2", {handle_, as("keys", keys, key_), as("values", values, value_)});
}

void DenseHashTable::remove(const Tensor& keys) const {
  raw_op("LookupTableRemoveV2", {handle_, as("keys", keys, key_)});
}

Tensor DenseHashTable::size() const { return raw_op("LookupTableSizeV2", {handle_})[0]; }

std::pair<Tensor, Tensor> DenseHashTable::export_all() const {
  auto all = raw_op("LookupTableExportV2", {handle_}, {{"Tkeys", key_}, {"Tvalues", value_}});
  return {std::move(all[0]), std::move(all[1])};
}

}  // namespace tandem::lookup::experimental
