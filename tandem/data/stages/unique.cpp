#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"

namespace tandem::data {
namespace {

void check(const ElementSpec& spec) {
  if (spec.size() != 1) {
    throw InvalidArgumentError(cat("unique() takes elements of a single component, got ", spec,
                                   ". Map them to the component that shall differ."));
  }
  const DType dtype = spec[0].dtype;
  if (dtype == DType::kInvalid || dtype == DType::kInt32 || dtype == DType::kInt64 ||
      dtype == DType::kString) {
    return;
  }
  throw InvalidArgumentError(
      cat("unique() takes elements of dtype int32, int64 or string, got ", spec, "."));
}

// Equal for equal elements alone: the shape, and values with their lengths where these differ.
std::string key_of(const Tensor& tensor) {
  const Array array = tensor.array();
  std::string key = cat(array.dtype(), array.shape(), ":");
  if (array.dtype() != DType::kString) {
    return key.append(static_cast<const char*>(array.raw_data()), array.num_bytes());
  }
  for (const std::string& text : array.values<std::string>()) key += cat(text.size(), ":") + text;
  return key;
}

class UniqueIterator final : public UnaryIterator {
 public:
  UniqueIterator(std::unique_ptr<IteratorBase> input, IterationContext context)
      : UnaryIterator(std::move(input)), context_(std::move(context)) {}

  bool next(Element& out) override {
    while (input().next(out)) {
      context_.check();
      const std::int64_t number = number_++;
      try {
        ElementSpec spec;
        for (const Tensor& tensor : out) spec.push_back({tensor.dtype(), tensor.partial_shape()});
        check(spec);
        if (seen_.insert(key_of(out[0])).second) return true;
      } catch (...) {
        throw_stage_error("unique", number, origin_text(input().origin()));
      }
    }
    return false;
  }

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("Unique");
    state.value(number_);
    std::vector<std::string> keys(seen_.begin(), seen_.end());
    state.value(keys);
    if (state.restoring()) seen_ = {keys.begin(), keys.end()};
    input().visit_state(state);
  }

 private:
  std::int64_t number_ = 0;
  std::unordered_set<std::string> seen_;
  IterationContext context_;
};

class UniqueDataset final : public UnaryDataset {
 public:
  using UnaryDataset::UnaryDataset;
  std::string name() const override { return "Unique"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<UniqueIterator>(input().iterator(context), context);
  }
  std::int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : kUnknown; }
};

}  // namespace

Dataset Dataset::unique() const {
  // What only iterating would show is checked element by element.
  if (base_of(*this)->num_components() >= 0) check(element_spec());
  return make_dataset<UniqueDataset>(base_);
}

}  // namespace tandem::data
