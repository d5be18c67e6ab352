#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tandem::keras::internal {

struct Pickled;
using PickledRef = std::shared_ptr<Pickled>;

/// A value out of a Python pickle. Objects are not made: of a NumPy array there is the list of
/// what it would be made of.
struct Pickled {
  ~Pickled();  // also of values that are nested deeply

  struct None {};
  struct List {
    std::vector<PickledRef> values;  ///< of a list or tuple
  };
  struct Dict {
    std::vector<std::pair<PickledRef, PickledRef>> entries;
  };
  /// "numpy.core.multiarray _reconstruct", called with `arguments`, then given `state`.
  struct Object {
    std::string callable;
    PickledRef arguments;
    PickledRef state;
  };
  std::variant<None, bool, std::int64_t, double, std::string, List, Dict, Object> value = None();
};

/// Reads a pickle of protocol 0 … 5 as far as data of numbers, texts, lists, dictionaries and NumPy
/// arrays use it. Nothing of it is executed. Errors call the bytes `name`: DataLossError where they
/// are damaged, UnimplementedError for other opcodes.
PickledRef read_pickle(std::string_view bytes, const std::string& name);

/// The value under a key of a dictionary; null if there is none.
PickledRef find_key(const Pickled& dict, std::string_view key);

/// The bytes of a NumPy array, with its sizes and its dtype as NumPy calls it ("u1", "i8", "O8").
struct PickledArray {
  std::vector<std::int64_t> shape;
  std::string dtype;
  std::string bytes;                ///< of numbers
  std::vector<PickledRef> objects;  ///< of dtype "O8"
};
/// Throws DataLossError if the value is no array.
PickledArray array_of(const Pickled& value, const std::string& name);

}  // namespace tandem::keras::internal
