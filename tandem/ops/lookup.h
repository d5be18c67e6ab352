#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

/// Tables that are looked up by key: words to numbers, numbers to words, and the like. Names and
/// meaning are tf.lookup's.
///
///     td::lookup::StaticHashTable ids(
///         td::lookup::TextFileInitializer{.filename = "words.txt"}, -1);      // line numbers
///     td::Tensor x = ids.lookup({"salt", "pepper"});                          // int64[2]
///     auto train = lines.map([ids](td::Tensor line) { return ids.lookup(td::strings::lower(line));
///     });
///
/// Tables are handles: copies refer to the same one, which lives as long as a copy, or a function
/// that captured it. They are filled at once, even where a function is being traced, and looked up
/// by ops, so that a traced function's graph looks up at each call. Thread-safe.
namespace tandem::lookup {

/// Keys beside their values, two vectors of one length.
struct KeyValueTensorInitializer {
  Tensor keys;
  Tensor values;
};

/// What a line of a text file gives besides its columns, which count from 0.
enum TextFileIndex : std::int64_t {
  kWholeLine = -2,   ///< all of it, a string
  kLineNumber = -1,  ///< its number, an int64 from 0
};
/// A key and a value from each line of a text file.
struct TextFileInitializer {
  String filename;
  DType key_dtype = DType::kString;
  std::int64_t key_index = kWholeLine;  ///< a column, or a TextFileIndex
  DType value_dtype = DType::kInt64;
  std::int64_t value_index = kLineNumber;
  std::int64_t vocab_size = -1;         ///< so many lines, which the file must have; -1: all
  String delimiter = "\t";              ///< one character, between columns
  std::int64_t value_index_offset = 0;  ///< added to numbers of lines
};
using TableInitializer = std::variant<KeyValueTensorInitializer, TextFileInitializer>;

/// A table that its initializer fills once.
class TANDEM_EXPORT StaticHashTable {
 public:
  /// `default_value`, a scalar, is what unknown keys have; a number is cast to the values' dtype.
  /// Throws InvalidArgumentError where keys and values do not fit each other or a line cannot be
  /// read, FailedPreconditionError if a key has two values, NotFoundError without the file.
  StaticHashTable(const TableInitializer& initializer, Tensor default_value);

  /// The values of the keys, of their shape. Throws InvalidArgumentError for another dtype.
  Tensor lookup(Tensor keys) const;
  /// `lookup`, as Python writes it: `table[keys]`.
  Tensor operator[](Tensor keys) const { return lookup(std::move(keys)); }
  /// The number of keys, an int64 scalar.
  Tensor size() const;
  /// All keys and their values, in no order.
  std::pair<Tensor, Tensor> export_all() const;

  DType key_dtype() const;
  DType value_dtype() const;
  const Tensor& default_value() const;
  /// The resource handle, for LookupTable ops.
  const Tensor& handle() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

/// Numbers of words: those that the initializer knows have its values (int64), all others one of
/// `num_oov_buckets` numbers from there on, by a hash that is the same everywhere and ever.
class TANDEM_EXPORT StaticVocabularyTable {
 public:
  /// Without an initializer every key has a bucket. Keys are strings or integers.
  StaticVocabularyTable(const std::optional<TableInitializer>& initializer,
                        std::int64_t num_oov_buckets);

  /// int64, of the keys' shape.
  Tensor lookup(Tensor keys) const;
  /// `lookup`, as Python writes it: `table[keys]`.
  Tensor operator[](Tensor keys) const { return lookup(std::move(keys)); }
  /// The number of keys and buckets, an int64 scalar.
  Tensor size() const;

 private:
  std::optional<StaticHashTable> table_;
  std::int64_t known_ = 0;
  std::int64_t num_oov_buckets_;
};

/// A table that may change; an empty one at first.
class TANDEM_EXPORT MutableHashTable {
 public:
  /// `default_value` is what unknown keys have, a scalar or a vector: each value has its shape.
  MutableHashTable(DType key_dtype, DType value_dtype, Tensor default_value);

  /// Values of shape [keys…] + the default's.
  Tensor lookup(Tensor keys) const;
  /// `lookup`, as Python writes it: `table[keys]`.
  Tensor operator[](Tensor keys) const { return lookup(std::move(keys)); }
  /// Puts values under keys, new ones and known ones.
  void insert(Tensor keys, Tensor values) const;
  /// Takes keys out; unknown ones are passed over.
  void remove(Tensor keys) const;
  Tensor size() const;
  /// All keys and their values, in no order.
  std::pair<Tensor, Tensor> export_all() const;
  const Tensor& handle() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace tandem::lookup
