#include "tandem/kernels/cpu/state/lookup_table.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/string/string_hash.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

// Copies n elements between arrays of one dtype.
void copy_between(Array& to, std::int64_t to_at, const Array& from, std::int64_t from_at,
                  std::int64_t n) {
  with_element(to.dtype(), [&]<class T>() {
    copy_elements(static_cast<T*>(to.raw_data()) + to_at,
                  static_cast<const T*>(from.raw_data()) + from_at, n);
  });
}

// Whether row i of `values`, of the dtype and as many elements as `row`, is equal to it.
bool row_equals(const Array& values, std::int64_t i, const Array& row) {
  const std::int64_t n = row.num_elements();
  if (row.dtype() == DType::kString) {
    const std::string* const given = values.data<std::string>() + i * n;
    return std::equal(given, given + n, row.data<std::string>());
  }
  const std::size_t bytes = row.num_bytes();
  const char* const given = static_cast<const char*>(values.raw_data());
  return bytes == 0 ||
         std::memcmp(given + static_cast<std::size_t>(i) * bytes, row.raw_data(), bytes) == 0;
}

Shape joined(const Shape& first, const Shape& second) {
  Shape shape = first;
  for (const std::int64_t size : second.dims()) shape.add_dim(size);
  return shape;
}

[[noreturn]] void throw_empty() {
  throw FailedPreconditionError(
      "Table not initialized. Fill it with InitializeTableV2 or InitializeTableFromTextFileV2.");
}

bool supported(DType t) { return kPodTypes.contains(t) || t == DType::kString; }

}  // namespace

LookupTable::LookupTable(Kind kind, Marks marks, std::optional<DenseBuckets> buckets)
    : kind_(std::move(kind)), marks_(std::move(marks)), buckets_(std::move(buckets)) {
  if (!supported(kind_.key) || !supported(kind_.value)) {
    throw InvalidArgumentError(
        cat("There are no tables from ", kind_.key, " to ", kind_.value, "."));
  }
  if (marks_.empty.valid()) empty_key_ = key_at(marks_.empty, 0);
  if (marks_.deleted.valid()) deleted_key_ = key_at(marks_.deleted, 0);
  if (empty_key_ && empty_key_ == deleted_key_) {
    throw InvalidArgumentError("Empty and deleted keys cannot be equal");
  }
}

std::string LookupTable::debug_string() const {
  return cat(kind_.fixed ? "" : "mutable ", "table from ", kind_.key, kind_.key_shape, " to ",
             kind_.value, kind_.value_shape);
}

std::string LookupTable::key_at(const Array& keys, std::int64_t i) const {
  const std::int64_t n = kind_.key_shape.num_elements();
  if (kind_.key != DType::kString) {
    const auto bytes = static_cast<std::size_t>(n) * dtype_size(kind_.key);
    return {static_cast<const char*>(keys.raw_data()) + static_cast<std::size_t>(i) * bytes, bytes};
  }
  const std::string* strings = keys.data<std::string>() + i * n;
  if (kind_.key_shape.rank() == 0) return *strings;
  std::string key;  // with lengths, so that no two lists have the same bytes
  for (std::int64_t k = 0; k < n; ++k)
    key.append(std::to_string(strings[k].size())).append(1, ':').append(strings[k]);
  return key;
}

void LookupTable::check_dtypes(const Array& keys, const Array* values) const {
  if (keys.dtype() != kind_.key || (values != nullptr && values->dtype() != kind_.value)) {
    throw InvalidArgumentError(cat("Table types are ", kind_.key, " to ", kind_.value,
                                   ", but keys are ", keys.dtype(),
                                   values ? cat(" and values ", values->dtype()) : "", "."));
  }
}

Shape LookupTable::batch_of(const Array& keys) const {
  const int batch = keys.rank() - kind_.key_shape.rank();
  bool fits = batch >= 0;
  for (int i = 0; fits && i < kind_.key_shape.rank(); ++i) {
    fits = keys.shape()[batch + i] == kind_.key_shape[i];
  }
  if (!fits) {
    throw InvalidArgumentError(cat("Input key shape must be ", kind_.key_shape,
                                   " after the batch dimensions, but keys have shape ",
                                   keys.shape()));
  }
  return Shape(keys.shape().dims().first(static_cast<std::size_t>(batch)));
}

void LookupTable::check_values(const Array& keys, const Array& values) const {
  check_dtypes(keys, &values);
  const Shape wanted = joined(batch_of(keys), kind_.value_shape);
  if (!(values.shape() == wanted)) {
    throw InvalidArgumentError(cat("Expected shape ", wanted, " for value, got ", values.shape()));
  }
}

void LookupTable::require_open(const char* what) const {
  // TensorFlow's error, by its meaning and not for want of code: such a table is filled once.
  if (kind_.fixed) {
    throw UnimplementedError(
        cat(what,
            " is not supported by a HashTable, which InitializeTableV2 or "
            "InitializeTableFromTextFileV2 fills once. Make a MutableHashTableV2."));
  }
}

Array LookupTable::find(const Array& keys, const Array& default_value) const {
  check_dtypes(keys, &default_value);
  const Shape batch = batch_of(keys);
  const std::int64_t inner = kind_.value_shape.num_elements(), count = batch.num_elements();
  Array out(kind_.value, joined(batch, kind_.value_shape));
  const bool each = default_value.shape() == out.shape();
  if (!each && !(default_value.shape() == kind_.value_shape)) {
    throw InvalidArgumentError(cat("Expected shape ", kind_.value_shape, " or ", out.shape(),
                                   " for default value, got ", default_value.shape()));
  }
  if (const auto fixed = fixed_strings()) {
    const std::string* const wanted = keys.data<std::string>();
    with_element(kind_.value, [&]<class T>() {
      const T* const values = static_cast<const T*>(fixed->values.raw_data());
      const T* const unknown = static_cast<const T*>(default_value.raw_data());
      T* to = static_cast<T*>(out.raw_data());
      for (std::int64_t i = 0; i < count; ++i, to += inner) {
        const std::int64_t row = fixed->index.find(wanted[i]);
        copy_elements(to, row == StringIndex::kMissing ? unknown : values + row * inner, inner);
      }
    });
    return out;
  }
  std::lock_guard lock(mutex_);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string key = key_at(keys, i);
    if (key == empty_key_ || key == deleted_key_) {
      throw InvalidArgumentError(cat("Using the ", key == empty_key_ ? "empty" : "deleted",
                                     "_key as a table key is not allowed"));
    }
    const auto at = rows_.find(key);
    if (at != rows_.end()) {
      copy_between(out, i * inner, at->second, 0, inner);
    } else {
      // A fixed table takes the first default for all, as TensorFlow's does.
      copy_between(out, i * inner, default_value, each && !kind_.fixed ? i * inner : 0, inner);
    }
  }
  return out;
}

std::shared_ptr<const LookupTable::FixedStrings> LookupTable::fixed_strings() const {
  std::lock_guard lock(mutex_);
  if (kind_.fixed && !initialized_) throw_empty();
  return fixed_strings_;
}

// With the lock held.
void LookupTable::put(std::string key, const Array& values, std::int64_t i) {
  if (key == empty_key_ || key == deleted_key_) {
    throw InvalidArgumentError(cat("Using the ", key == empty_key_ ? "empty" : "deleted",
                                   "_key as a table key is not allowed"));
  }
  Array value(kind_.value, kind_.value_shape);
  copy_between(value, 0, values, i * value.num_elements(), value.num_elements());
  const auto [row, fresh] = rows_.insert_or_assign(std::move(key), std::move(value));
  if (buckets_ && fresh) buckets_->insert(&row->first, hash(row->first));
}

void LookupTable::insert(const Array& keys, const Array& values) {
  require_open("LookupTableInsertV2");
  check_values(keys, values);
  const std::int64_t count = batch_of(keys).num_elements();
  std::lock_guard lock(mutex_);
  if (buckets_) buckets_->reserve(static_cast<std::int64_t>(rows_.size()) + count);
  for (std::int64_t i = 0; i < count; ++i) put(key_at(keys, i), values, i);
}

void LookupTable::remove(const Array& keys) {
  require_open("LookupTableRemoveV2");
  check_dtypes(keys, nullptr);
  const std::int64_t count = batch_of(keys).num_elements();
  std::lock_guard lock(mutex_);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string key = key_at(keys, i);
    if (key == empty_key_ || key == deleted_key_) {
      throw InvalidArgumentError(
          "Using the empty_key or deleted_key as a table key is not allowed");
    }
    const auto row = rows_.find(key);
    if (row == rows_.end()) continue;
    if (buckets_) buckets_->remove(&row->first, hash(key));
    rows_.erase(row);
  }
}

void LookupTable::replace(const Array& keys, const Array& values) {
  if (kind_.fixed) return initialize(keys, values);  // TensorFlow fills its tables so
  if (buckets_) return import_buckets(keys, values);
  check_values(keys, values);
  const std::int64_t count = batch_of(keys).num_elements();
  std::lock_guard lock(mutex_);
  rows_.clear();
  for (std::int64_t i = 0; i < count; ++i) put(key_at(keys, i), values, i);
}

// The buckets of a dense table, as exported() gives them, or plain rows.
void LookupTable::import_buckets(const Array& given_keys, const Array& given_values) {
  Array keys = given_keys, values = given_values;
  const Shape one = joined(Shape{keys.rank() > 0 ? keys.shape()[0] : 1}, Shape{1});
  if (kind_.key_shape.rank() == 0 && keys.shape() == one) keys = keys.reshape(Shape{one[0]});
  if (kind_.value_shape.rank() == 0 && values.shape() == one)
    values = values.reshape(Shape{one[0]});
  check_values(keys, values);
  const std::int64_t count = batch_of(keys).num_elements();
  std::lock_guard lock(mutex_);
  rows_.clear();
  buckets_->clear();
  std::vector<DenseBuckets::Bucket> buckets(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    DenseBuckets::Bucket& bucket = buckets[static_cast<std::size_t>(i)];
    const std::string key = key_at(keys, i);
    bucket.removed = key == deleted_key_;
    if (is_mark(key)) continue;
    Array value(kind_.value, kind_.value_shape);
    copy_between(value, 0, values, i * value.num_elements(), value.num_elements());
    const auto [row, fresh] = rows_.try_emplace(key, std::move(value));
    if (fresh) bucket = {&row->first, hash(key), false};
  }
  if (DenseBuckets::fits(count)) return buckets_->assign(buckets);
  buckets_->reserve(static_cast<std::int64_t>(rows_.size()));
  for (const DenseBuckets::Bucket& bucket : buckets) {
    if (bucket.key) buckets_->insert(bucket.key, bucket.hash);
  }
}

// TensorFlow's, of the dtypes of keys that its dense tables have.
std::uint64_t LookupTable::hash(const std::string& key) const {
  Array elements(kind_.key, kind_.key_shape);
  set_key(elements, 0, key);
  const auto of_element = [&](std::int64_t i) -> std::uint64_t {
    switch (kind_.key) {
      case DType::kString: return murmur(elements.data<std::string>()[i]);
      case DType::kInt64: return static_cast<std::uint64_t>(elements.data<std::int64_t>()[i]);
      case DType::kInt32: return static_cast<std::uint64_t>(elements.data<std::int32_t>()[i]);
      default: {
        const std::size_t size = dtype_size(kind_.key);
        const auto* bytes = static_cast<const char*>(elements.raw_data());
        return murmur({bytes + static_cast<std::size_t>(i) * size, size});
      }
    }
  };
  const std::int64_t n = elements.num_elements();
  if (n == 1) return of_element(0);
  std::uint64_t all = 0;
  for (std::int64_t i = 0; i < n; ++i) all = DenseBuckets::combine(all, of_element(i));
  return all;
}

// With the lock held. Steps of exported graphs fill their tables each time; as in TensorFlow the
// first rows stay, and only how many there are is compared.
void LookupTable::require_as_many(std::int64_t count) const {
  if (static_cast<std::size_t>(count) == rows_.size()) return;
  throw FailedPreconditionError(cat("Table was already initialized with different data: it has ",
                                    rows_.size(), " rows, and was given ", count, "."));
}

void LookupTable::initialize(const Array& keys, const Array& values) {
  if (!kind_.fixed) {
    throw InvalidArgumentError("Table initialization is only supported by HashTable.");
  }
  check_values(keys, values);
  const std::int64_t count = batch_of(keys).num_elements();
  std::lock_guard lock(mutex_);
  if (initialized_) return require_as_many(count);
  rows_.clear();  // of an attempt that failed
  for (std::int64_t i = 0; i < count; ++i) {
    std::string key = key_at(keys, i);
    const auto known = rows_.find(key);
    if (known == rows_.end()) {
      put(std::move(key), values, i);
    } else if (!row_equals(values, i, known->second)) {
      rows_.clear();
      throw FailedPreconditionError(
          cat("HashTable has different values for the same key, at position ", i, "."));
    }
  }
  fixed_strings_ = index_strings();
  initialized_ = true;
}

// With the lock held.
std::shared_ptr<const LookupTable::FixedStrings> LookupTable::index_strings() const {
  if (kind_.key != DType::kString || kind_.key_shape.rank() != 0) return nullptr;
  const Shape count{static_cast<std::int64_t>(rows_.size())};
  FixedStrings fixed{{}, Array(kind_.value, joined(count, kind_.value_shape))};
  for (const auto& [key, value] : rows_) {
    const std::int64_t n = value.num_elements();
    copy_between(fixed.values, fixed.index.add(key) * n, value, 0, n);
  }
  return std::make_shared<const FixedStrings>(std::move(fixed));
}

std::int64_t LookupTable::size() const {
  std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(rows_.size());
}

// Element i of `keys`, from the bytes that key_at() made of one.
void LookupTable::set_key(Array& keys, std::int64_t i, const std::string& key) const {
  if (kind_.key != DType::kString) {
    if (key.empty()) return;
    std::memcpy(static_cast<char*>(keys.raw_data()) + static_cast<std::size_t>(i) * key.size(),
                key.data(), key.size());
    return;
  }
  if (kind_.key_shape.rank() == 0) {
    keys.data<std::string>()[i] = key;
    return;
  }
  const std::int64_t n = kind_.key_shape.num_elements();
  std::size_t at = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::size_t colon = key.find(':', at);
    const std::size_t size = std::stoull(key.substr(at, colon - at));
    keys.data<std::string>()[i * n + k] = key.substr(colon + 1, size);
    at = colon + 1 + size;
  }
}

LookupTable::Contents LookupTable::contents() const {
  std::lock_guard lock(mutex_);
  if (kind_.fixed && !initialized_) throw_empty();
  const Shape count{static_cast<std::int64_t>(rows_.size())};
  Contents all{Array(kind_.key, joined(count, kind_.key_shape)),
               Array(kind_.value, joined(count, kind_.value_shape))};
  const std::int64_t inner = kind_.value_shape.num_elements();
  // By key: equal tables have equal contents, however their rows came in.
  using Row = std::pair<const std::string, Array>;
  std::vector<const Row*> sorted;
  sorted.reserve(rows_.size());
  for (const Row& row : rows_) sorted.push_back(&row);
  std::sort(sorted.begin(), sorted.end(),
            [](const Row* a, const Row* b) { return a->first < b->first; });
  std::int64_t i = 0;
  for (const Row* row : sorted) {
    const auto& [key, value] = *row;
    set_key(all.keys, i, key);
    copy_between(all.values, i * inner, value, 0, inner);
    ++i;
  }
  return all;
}

LookupTable::Contents LookupTable::exported() const {
  if (!buckets_) return contents();
  std::lock_guard lock(mutex_);
  const std::int64_t count = buckets_->count();
  const auto of_buckets = [count](const Shape& shape) {
    return joined(Shape{count}, shape.rank() == 0 ? Shape{1} : shape);
  };
  Contents all{Array(kind_.key, of_buckets(kind_.key_shape)),
               Array(kind_.value, of_buckets(kind_.value_shape))};
  const std::int64_t width = kind_.key_shape.num_elements();
  const std::int64_t inner = kind_.value_shape.num_elements();
  const Array none = Array::zeros(kind_.value, kind_.value_shape);
  for (std::int64_t i = 0; i < count; ++i) {
    const DenseBuckets::Bucket bucket = buckets_->at(i);
    if (bucket.key) {
      set_key(all.keys, i, *bucket.key);
      copy_between(all.values, i * inner, rows_.at(*bucket.key), 0, inner);
    } else {
      const Array& mark = bucket.removed ? marks_.deleted : marks_.empty;
      copy_between(all.keys, i * width, mark, 0, width);
      copy_between(all.values, i * inner, none, 0, inner);
    }
  }
  return all;
}

}  // namespace tandem::cpu
