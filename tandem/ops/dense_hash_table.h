#pragma once

#include <cstdint>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/ops/lookup.h"
#include "tandem/runtime/tensor.h"

/// tf.lookup.experimental.
namespace tandem::lookup::experimental {

using lookup::MutableHashTable;

/// A table that may change, in one block of memory: faster to look up in than a MutableHashTable,
/// for two keys that stand for free places and are never used.
///
/// A handle, thread-safe. Keys and values of another dtype, and the two keys in `lookup` or
/// `insert`, throw InvalidArgumentError.
class TANDEM_EXPORT DenseHashTable {
 public:
  /// `default_value` is what unknown keys have, a scalar or a vector: each value has its shape.
  /// `initial_num_buckets`, a power of two, is room for so many keys at first.
  DenseHashTable(DType key_dtype, DType value_dtype, Tensor default_value, Tensor empty_key,
                 Tensor deleted_key, std::int64_t initial_num_buckets = 131072);

  /// Values of shape [keys…] + the default's.
  Tensor lookup(const Tensor& keys) const;
  Tensor operator[](const Tensor& keys) const { return lookup(keys); }
  void insert(const Tensor& keys, const Tensor& values) const;
  void insert_or_assign(const Tensor& keys, const Tensor& values) const { insert(keys, values); }
  void remove(const Tensor& keys) const;
  void erase(const Tensor& keys) const { remove(keys); }
  Tensor size() const;
  /// All keys and their values, in no order.
  std::pair<Tensor, Tensor> export_all() const;

  DType key_dtype() const { return key_; }
  DType value_dtype() const { return value_; }
  const Tensor& handle() const { return handle_; }

 private:
  DType key_;
  DType value_;
  Tensor default_;
  Tensor handle_;
};

}  // namespace tandem::lookup::experimental
