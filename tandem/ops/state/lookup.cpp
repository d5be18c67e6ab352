#include "tandem/ops/lookup.h"

#include <vector>

#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/string_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem::lookup {
namespace {

// What a table needs to be asked: made once, for look-ups are frequent.
struct Table {
  Tensor handle;
  DType key = DType::kInvalid, value = DType::kInvalid;
  Tensor missing;
};

template <class Make>
auto made_eagerly(Make make) {
  const TraceScope eager(nullptr);
  const StopRecording unheard;
  return make();
}

Tensor fitting_default(Tensor given, DType dtype) {
  if (given.is_symbolic()) {
    throw FailedPreconditionError(
        "The default value of a table must be known when the table is made, but is computed by the "
        "function that is being traced. Make the table outside of it.");
  }
  if (given.dtype() == dtype) return given;
  const bool whole = given.dtype() == DType::kInt32 || given.dtype() == DType::kInt64;
  const bool fits = whole ? is_integer(dtype) || is_floating(dtype)
                          : is_floating(given.dtype()) && is_floating(dtype);
  if (!fits) {
    throw InvalidArgumentError(cat("The default value of a table must have the dtype of its ",
                                   "values, ", dtype, ", got ", given.dtype(), "."));
  }
  return made_eagerly([&] { return cast(given, dtype); });
}

void check_dtype(const char* what, const Tensor& given, DType wanted) {
  if (given.dtype() == wanted) return;
  throw InvalidArgumentError(
      cat("Dtype of argument `", what, "` must be ", wanted, ", received: ", given.dtype(), "."));
}

// The result of a look-up; its op cannot infer the shape of the values.
Tensor look_up(const Table& table, const Tensor& keys) {
  check_dtype("keys", keys, table.key);
  Tensor values = raw_op("LookupTableFindV2", {table.handle, keys, table.missing})[0];
  const PartialShape known = keys.partial_shape();
  if (values.partial_shape().has_rank() || !known.has_rank()) return values;
  std::vector<std::int64_t> sizes(known.dims().begin(), known.dims().end());
  const Shape each = table.missing.shape();
  sizes.insert(sizes.end(), each.dims().begin(), each.dims().end());
  return raw_op("EnsureShape", {values}, {{"shape", PartialShape(sizes)}})[0];
}

Tensor size_of(const Table& table) { return raw_op("LookupTableSizeV2", {table.handle})[0]; }

std::pair<Tensor, Tensor> contents_of(const Table& table) {
  auto all = raw_op("LookupTableExportV2", {table.handle},
                    {{"Tkeys", table.key}, {"Tvalues", table.value}});
  return {std::move(all[0]), std::move(all[1])};
}

Tensor make_table(const char* op, const Table& table) {
  return raw_op(op, {}, {{"key_dtype", table.key}, {"value_dtype", table.value}})[0];
}

void fill(Table& table, const KeyValueTensorInitializer& from) {
  if (!from.keys.defined() || !from.values.defined()) {
    throw InvalidArgumentError("KeyValueTensorInitializer needs keys and values.");
  }
  if (from.keys.is_symbolic() || from.values.is_symbolic()) {
    throw FailedPreconditionError(
        "The keys and values of a table must be known when the table is made, but are computed by "
        "the function that is being traced. Make the table outside of it.");
  }
  table.key = from.keys.dtype();
  table.value = from.values.dtype();
  table.handle = make_table("AnonymousHashTable", table);
  raw_op("InitializeTableV2", {table.handle, from.keys, from.values});
}

void fill(Table& table, const TextFileInitializer& from) {
  table.key = from.key_dtype;
  table.value = from.value_dtype;
  table.handle = make_table("AnonymousHashTable", table);
  raw_op("InitializeTableFromTextFileV2", {table.handle, Tensor(from.filename)},
         {{"key_index", from.key_index},
          {"value_index", from.value_index},
          {"vocab_size", from.vocab_size},
          {"delimiter", from.delimiter},
          {"offset", from.value_index_offset}});
}

}  // namespace

// ---- StaticHashTable ----

struct StaticHashTable::State : Table {};

StaticHashTable::StaticHashTable(const TableInitializer& initializer, Tensor default_value) {
  auto state = std::make_shared<State>();
  made_eagerly([&] { std::visit([&](const auto& from) { fill(*state, from); }, initializer); });
  state->missing = fitting_default(std::move(default_value), state->value);
  if (state->missing.rank() != 0) {
    throw InvalidArgumentError(cat("The default value of a StaticHashTable must be a scalar, got ",
                                   state->missing.shape(), "."));
  }
  state_ = std::move(state);
}

Tensor StaticHashTable::lookup(Tensor keys) const { return look_up(*state_, keys); }
Tensor StaticHashTable::size() const { return size_of(*state_); }
std::pair<Tensor, Tensor> StaticHashTable::export_all() const { return contents_of(*state_); }
DType StaticHashTable::key_dtype() const { return state_->key; }
DType StaticHashTable::value_dtype() const { return state_->value; }
const Tensor& StaticHashTable::default_value() const { return state_->missing; }
const Tensor& StaticHashTable::handle() const { return state_->handle; }

// ---- StaticVocabularyTable ----

StaticVocabularyTable::StaticVocabularyTable(const std::optional<TableInitializer>& initializer,
                                             std::int64_t num_oov_buckets)
    : num_oov_buckets_(num_oov_buckets) {
  if (num_oov_buckets <= 0) {
    throw InvalidArgumentError(
        cat("`num_oov_buckets` must be > 0; use StaticHashTable. Got ", num_oov_buckets, "."));
  }
  if (!initializer) return;
  table_.emplace(*initializer, Tensor(std::int64_t{-1}));
  if (table_->value_dtype() != DType::kInt64) {
    throw InvalidArgumentError(
        cat("Invalid `value_dtype`, expected int64 but got ", table_->value_dtype(), "."));
  }
  if (table_->key_dtype() != DType::kString && !is_integer(table_->key_dtype())) {
    throw InvalidArgumentError(cat("Invalid `key_dtype`, expected string or an integer but got ",
                                   table_->key_dtype(), "."));
  }
  known_ = made_eagerly([&] { return table_->size().item<std::int64_t>(); });
}

Tensor StaticVocabularyTable::lookup(Tensor keys) const {
  if (keys.dtype() != DType::kString && !is_integer(keys.dtype())) {
    throw InvalidArgumentError(cat("Dtype of argument `keys` must be ",
                                   table_ ? cat(table_->key_dtype()) : "string or an integer",
                                   ", received: ", keys.dtype(), "."));
  }
  const Tensor ids = table_ ? table_->lookup(keys) : Tensor();
  const Tensor texts = keys.dtype() == DType::kString ? keys : strings::as_string(keys);
  const Tensor buckets = strings::to_hash_bucket_fast(texts, num_oov_buckets_) + Tensor(known_);
  return table_ ? where(not_equal(ids, table_->default_value()), ids, buckets) : buckets;
}

Tensor StaticVocabularyTable::size() const { return Tensor(known_ + num_oov_buckets_); }

// ---- MutableHashTable ----

struct MutableHashTable::State : Table {};

MutableHashTable::MutableHashTable(DType key_dtype, DType value_dtype, Tensor default_value) {
  auto state = std::make_shared<State>();
  state->key = key_dtype;
  state->value = value_dtype;
  state->missing = fitting_default(std::move(default_value), value_dtype);
  made_eagerly([&] {
    if (state->missing.rank() == 0) {
      state->handle = make_table("AnonymousMutableHashTable", *state);
    } else {
      state->handle = raw_op("AnonymousMutableHashTableOfTensors", {},
                             {{"key_dtype", key_dtype},
                              {"value_dtype", value_dtype},
                              {"value_shape", PartialShape(state->missing.shape())}})[0];
    }
  });
  state_ = std::move(state);
}

Tensor MutableHashTable::lookup(Tensor keys) const { return look_up(*state_, keys); }
void MutableHashTable::insert(Tensor keys, Tensor values) const {
  check_dtype("keys", keys, state_->key);
  check_dtype("values", values, state_->value);
  raw_op("LookupTableInsertV2", {state_->handle, keys, values});
}
void MutableHashTable::remove(Tensor keys) const {
  check_dtype("keys", keys, state_->key);
  raw_op("LookupTableRemoveV2", {state_->handle, keys});
}
Tensor MutableHashTable::size() const { return size_of(*state_); }
std::pair<Tensor, Tensor> MutableHashTable::export_all() const { return contents_of(*state_); }
const Tensor& MutableHashTable::handle() const { return state_->handle; }

}  // namespace tandem::lookup
