#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/string_index.h"
#include "tandem/graph/table_resource.h"
#include "tandem/kernels/cpu/state/dense_buckets.h"

namespace tandem::cpu {

/// A map from keys to values, both of any element type; a key, or a value, may be a whole array.
/// Thread-safe: every member function takes the lock, but a fixed table of strings is read without.
class LookupTable final : public TableResource {
 public:
  struct Kind {
    DType key = DType::kInvalid, value = DType::kInvalid;
    Shape key_shape, value_shape;
    bool fixed = false;  ///< filled once, by an initializer
    bool dense = false;  ///< exported bucket by bucket
    bool operator==(const Kind&) const = default;
  };
  /// What marks buckets that were never used and those whose key was removed, in a dense table.
  struct Marks {
    Array empty, deleted;
  };
  /// The rows of a fixed table of strings, which no longer change: `values` are the index's.
  struct FixedStrings {
    StringIndex index;
    Array values;
  };

  explicit LookupTable(Kind kind) : LookupTable(std::move(kind), {}, std::nullopt) {}
  LookupTable(Kind kind, Marks marks, std::optional<DenseBuckets> buckets);

  const Kind& kind() const { return kind_; }
  std::string debug_string() const override;

  /// Values of shape [keys' batch…] + value_shape; where a key is unknown, the default.
  Array find(const Array& keys, const Array& default_value) const;
  /// The rows of a fixed table from strings; null for other tables. Throws FailedPreconditionError
  /// before it is filled.
  std::shared_ptr<const FixedStrings> fixed_strings() const;
  void insert(const Array& keys, const Array& values);
  void remove(const Array& keys);
  /// Only these keys afterwards; a fixed table is filled.
  void replace(const Array& keys, const Array& values);
  /// Fills a fixed table; a second time it stays as it is, if it was given as many rows.
  void initialize(const Array& keys, const Array& values);
  std::int64_t size() const;
  bool may_change() const override { return !kind_.fixed; }
  Contents contents() const override;
  /// What LookupTableExportV2 gives: the rows, or, of a dense table, all its buckets, where scalars
  /// are vectors of one. Buckets without a row have the value 0; TensorFlow's may still have that
  /// of a removed one.
  Contents exported() const;

 private:
  Shape batch_of(const Array& keys) const;
  void check_values(const Array& keys, const Array& values) const;
  void check_dtypes(const Array& keys, const Array* values) const;
  std::string key_at(const Array& keys, std::int64_t i) const;
  void put(std::string key, const Array& values, std::int64_t i);
  std::shared_ptr<const FixedStrings> index_strings() const;
  void import_buckets(const Array& keys, const Array& values);
  void set_key(Array& keys, std::int64_t i, const std::string& key) const;
  std::uint64_t hash(const std::string& key) const;
  bool is_mark(const std::string& key) const { return key == empty_key_ || key == deleted_key_; }
  void require_as_many(std::int64_t count) const;
  void require_open(const char* what) const;

  const Kind kind_;
  const Marks marks_;
  std::optional<std::string> empty_key_, deleted_key_;
  std::optional<DenseBuckets> buckets_;  ///< of a dense table: of the keys of `rows_`
  mutable std::mutex mutex_;
  bool initialized_ = false;
  std::unordered_map<std::string, Array> rows_;        ///< by the key's bytes
  std::shared_ptr<const FixedStrings> fixed_strings_;  ///< once it is filled
};

}  // namespace tandem::cpu
