#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/parse/example_parser.h"

namespace tandem::cpu {

/// The steps of one feature list in all records.
struct Steps {
  std::string key;
  DType dtype = DType::kFloat;
  std::vector<Located> all;
  std::vector<std::size_t> begin{0};  // of each record's, and the end
  std::vector<bool> found;            // in the record
  std::int64_t longest = 0;           // record, in steps
  std::int64_t widest = 0;            // step, in values
  std::int64_t values = 0;
};

/// The feature lists of serialized SequenceExamples as outputs of a kernel. The steps are found in
/// one pass over the records, and then written to where all counts put them.
class SequenceParser {
 public:
  SequenceParser(KernelContext& c, const Array& serialized, const Array* names)
      : c_(c),
        records_(serialized.values<std::string>()),
        names_(names),
        single_(serialized.rank() == 0) {}

  /// A list under `key`, whose values have the output's dtype.
  Steps& want(const std::string& key, DType dtype) {
    wanted_.push_back({.key = key, .dtype = dtype});
    return wanted_.back();
  }
  void reserve(std::size_t count) { wanted_.reserve(count); }
  void find();

  void put_sparse(const Steps& steps, int output, int count);
  void put_dense(const Steps& steps, const PartialShape& shape, bool assumed_empty, int output,
                 int length_output);
  void put_ragged(const Steps& steps, int output, int count);

 private:
  std::int64_t batch() const { return static_cast<std::int64_t>(records_.size()); }
  [[noreturn]] void fail(std::size_t record, const std::string& key, const std::string& why) const {
    const bool named = names_ && names_->num_elements() > static_cast<std::int64_t>(record);
    throw InvalidArgumentError(
        cat("Name: ", named ? names_->data<std::string>()[record] : "<unknown>",
            ", Feature list: ", key, ", Index: ", record, ".  ", why));
  }
  void take(std::size_t record, Steps& steps, std::string_view list);
  template <class T>
  void put_splits(const Steps& steps, int outer, int inner);
  void put_values(const Steps& steps, int output);

  KernelContext& c_;
  const std::span<const std::string> records_;
  const Array* names_;
  const bool single_;
  std::vector<Steps> wanted_;
};

}  // namespace tandem::cpu
