#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tandem/data/dataset_base.h"
#include "tandem/data/element_functions.h"
#include "tandem/data/sources/draws.h"

namespace tandem::data {

/// The dataset that a function made of an element, being iterated. Used by one thread at a time.
class NestedSource {
 public:
  /// What is common to the sources of one stage; outlives them.
  struct Maker {
    const DatasetFn& fn;
    const char* stage;
    IterationContext context;
    DrawPass draws;  ///< of the function; to be restored before the sources
  };

  bool is_open() const { return iterator_ != nullptr; }
  /// Throws what the function throws, with stage and element, and then stays closed.
  void open(const Maker& maker, Element element, std::int64_t number);
  /// What it throws gets a line with stage and input element.
  bool next(Element& out);
  void close();
  /// The origin of the element that `next` gave; where unknown, the names in what the dataset was
  /// made of.
  Origin origin() const;
  /// The function is called again on the element that was saved.
  void visit_state(StateArchive& state, const Maker& maker);

 private:
  Element element_;
  std::int64_t number_ = 0;
  const char* stage_ = "";
  DatasetRef dataset_;
  std::unique_ptr<IteratorBase> iterator_;
  mutable std::optional<Origin> made_of_;
};

/// The spec of the dataset that the function makes of the input's first element.
ElementSpec nested_spec(const DatasetBase& input, const DatasetFn& fn, const char* stage);

/// Whether the dataset that the function makes of the input's first element does.
bool nested_reads_files(const DatasetBase& input, const DatasetFn& fn);

std::unique_ptr<IteratorBase> make_parallel_interleave(
    const DatasetBase& input, const DatasetFn& fn, std::int64_t cycle_length,
    std::int64_t block_length, std::int64_t calls, bool deterministic,
    const IterationContext& context, DrawPass draws);

}  // namespace tandem::data
