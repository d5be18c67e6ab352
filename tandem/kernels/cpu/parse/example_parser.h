#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/parse/example_wire.h"

namespace tandem::cpu {

enum class Form : std::uint8_t { kFixed, kPadded, kSparse, kRagged };

// What is asked for under one key.
struct Wanted {
  std::string key;
  Form form;
  DType dtype;
  int output;               // the values'
  PartialShape shape;       // of a dense feature
  Shape row;                // its known sizes, without a first one that varies
  std::int64_t stride = 1;  // values in `row`
  const Array* fallback = nullptr;
  Array* values = nullptr;
  std::size_t variable = 0;  // its column among the features of the second pass
};

inline FeatureKind kind_of(DType dtype) {
  return dtype == DType::kFloat   ? FeatureKind::kFloat
         : dtype == DType::kInt64 ? FeatureKind::kInt64
                                  : FeatureKind::kBytes;
}

inline std::string_view name_of(FeatureKind kind) {
  constexpr std::string_view kNames[] = {"none", "string", "float", "int64"};
  return kNames[static_cast<std::size_t>(kind)];
}

template <class F>
decltype(auto) with_type(DType dtype, F f) {
  if (dtype == DType::kFloat) return f(float{});
  if (dtype == DType::kInt64) return f(std::int64_t{});
  return f(std::string{});
}

struct Located {
  std::string_view list;  // as in WireFeature
  std::int64_t count = 0;
};

class KeyIndex;

/// The features of serialized Examples as outputs of a kernel. Two passes over the records, both in
/// parallel: the first finds the features, and writes those of fixed shape; the second writes the
/// others, whose places follow from all counts. A SequenceExample has its context where an Example
/// has its features, so this reads that too.
class ExampleParser {
 public:
  ExampleParser(KernelContext& c, const Array& serialized, const Array* names, bool scalar_splits)
      : c_(c),
        scalar_splits_(scalar_splits),
        records_(serialized.values<std::string>()),
        names_(names),
        single_(serialized.rank() == 0) {}

  void want(Wanted wanted) { wanted_.push_back(std::move(wanted)); }
  /// A dense feature, after checking its shape and default as TensorFlow does.
  void want_dense(std::string key, int i, const PartialShape& shape, const Array& fallback,
                  int output);
  void run();

 private:
  std::int64_t batch() const { return static_cast<std::int64_t>(records_.size()); }
  std::string place(std::int64_t record, const Wanted* w) const;
  [[noreturn]] void fail(std::int64_t record, const Wanted& w, const std::string& why) const {
    throw InvalidArgumentError(place(record, &w) + why);
  }
  void allocate_fixed();
  void locate(std::int64_t begin, std::int64_t end, const KeyIndex& index);
  void take(std::int64_t record, const Wanted& w, const WireFeature& feature);
  void put_fixed(std::int64_t record, const Wanted& w, const WireFeature& feature);
  void put_default(std::int64_t record, const Wanted& w);
  void put_variable(const Wanted& w);
  void put_indices(const Wanted& w, const std::vector<std::int64_t>& starts, std::int64_t longest);
  template <class T>
  void put_splits(const Wanted& w, const std::vector<std::int64_t>& starts);
  Located& located(std::int64_t record, const Wanted& w) {
    return located_[static_cast<std::size_t>(record) * variables_ + w.variable];
  }

  KernelContext& c_;
  const bool scalar_splits_;
  const std::span<const std::string> records_;
  const Array* names_;
  const bool single_;
  std::vector<Wanted> wanted_;
  std::size_t variables_ = 0;
  std::vector<Located> located_;
};

inline std::vector<std::string> strings_of(const Array& array) {
  const auto values = array.values<std::string>();
  return {values.begin(), values.end()};
}
/// Throws InvalidArgumentError unless the lists are of one length.
void check_count(const char* what, std::size_t keys, const char* types_name, std::size_t types);
/// The text of a key that is an input.
std::string key_of(const Array& key);

/// What is asked of Examples: keys by form, and the input from which on defaults stand.
struct ExampleRequest {
  std::vector<std::string> sparse, dense, ragged;
  int first_default = 0;
  bool scalar_splits = false;  ///< row splits of a single Example: a 0, not an empty vector
};

/// Parses into the first outputs: sparse indices, values and shapes; dense values; ragged values
/// and row splits. Returns how many outputs these are. `names` may be null.
int parse_examples(KernelContext& c, const Array& serialized, const ExampleRequest& request,
                   const std::vector<PartialShape>& dense_shapes, int num_defaults,
                   const Array* names);

}  // namespace tandem::cpu
