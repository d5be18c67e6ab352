#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/table_resource.h"

namespace tandem::cpu {

/// A map from keys to values, both of any element type; a key, or a value, may be a whole array.
/// Thread-safe: every member function takes the lock.
class LookupTable final : public TableResource {
 public:
  struct Kind {
    DType key = DType::kInvalid, value = DType::kInvalid;
    Shape key_shape, value_shape;
    bool fixed = false;  ///< filled once, by an initializer
    bool operator==(const Kind&) const = default;
  };
  explicit LookupTable(Kind kind, Array empty_key = {}, Array deleted_key = {});

  const Kind& kind() const { return kind_; }
  std::string debug_string() const override;

  /// Values of shape [keys' batch…] + value_shape; where a key is unknown, the default.
  Array find(const Array& keys, const Array& default_value) const;
  void insert(const Array& keys, const Array& values);
  void remove(const Array& keys);
  /// Only these keys afterwards; a fixed table is filled.
  void replace(const Array& keys, const Array& values);
  /// Of a fixed table: fills it; a second time it stays as it is, if it was given as many rows.
  void initialize(const Array& keys, const Array& values);
  std::int64_t size() const;
  bool may_change() const override { return !kind_.fixed; }
  Contents contents() const override;

 private:
  Shape batch_of(const Array& keys) const;
  void check_values(const Array& keys, const Array& values) const;
  void check_dtypes(const Array& keys, const Array* values) const;
  std::string key_at(const Array& keys, std::int64_t i) const;
  void put(std::string key, const Array& values, std::int64_t i);
  void require_as_many(std::int64_t count) const;
  void require_open(const char* what) const;

  const Kind kind_;
  std::optional<std::string> empty_key_, deleted_key_;
  mutable std::mutex mutex_;
  bool initialized_ = false;
  std::unordered_map<std::string, Array> rows_;  ///< by the key's bytes
};

}  // namespace tandem::cpu
