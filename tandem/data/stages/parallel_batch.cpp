#include "tandem/data/stages/parallel_batch.h"

#include <algorithm>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/data/fusion/batch_rows.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/sources/fetch_batch.h"
#include "tandem/data/stages/dataset_op.h"
#include "tandem/data/stages/group_dataset.h"
#include "tandem/data/stages/parallel_map.h"
#include "tandem/data/stages/stacker.h"

namespace tandem::data {
namespace {

// What passes between the stages: an int64 code, and then its things.
//   kParts   the number of elements, the batch's number, the places of the elements' origins, and
//            the components of one after the other, each with the name of its origin
//   kWhole   a batch
//   others   an error's code, and its message: it is thrown where the batch is wanted
constexpr std::int64_t kParts = -1;
constexpr std::int64_t kWhole = -2;
constexpr std::size_t kFirst = 4;  // of the components

void put_error(const std::exception_ptr& error, Element& out) {
  out.clear();
  out.emplace_back(static_cast<std::int64_t>(code_of(error)));
  out.emplace_back(message_of(error));
}

// Draws the elements of a batch. Rows in memory it gathers itself.
class CollectIterator final : public UnaryIterator {
 public:
  CollectIterator(std::unique_ptr<IteratorBase> input, std::int64_t size, bool drop_remainder,
                  IterationContext context)
      : UnaryIterator(std::move(input)),
        context_(std::move(context)),
        size_(size),
        drop_remainder_(drop_remainder) {}

  bool next(Element& out) override {
    if (ended_) return false;
    out.clear();
    const RowTable* table = input().rows();
    const std::int64_t count = table ? gather(*table, out) : collect(out);
    if (count < 0) return true;  // an error
    ++number_;
    ended_ = count < size_;
    return count == size_ || (count > 0 && !drop_remainder_);
  }

  Origin origin() const override { return of_several(first_); }

  void visit_state(StateArchive& state) override {
    state.stage(cat("Collect of ", size_));
    rows_.visit_state(state, ended_, input().rows());
    state.value(number_);
    input().visit_state(state);
  }

 private:
  std::int64_t gather(const RowTable& table, Element& out) {
    const std::span<const std::int64_t> numbers = rows_.draw(input(), context_);
    rows_.taken();
    if (numbers.empty()) return 0;
    try {
      table.gather(numbers, out);
      out.insert(out.begin(), Tensor(kWhole));
    } catch (...) {
      ++number_;
      put_error(std::current_exception(), out);
      return -1;
    }
    return static_cast<std::int64_t>(numbers.size());
  }

  std::int64_t collect(Element& out) {
    out.emplace_back(kParts);
    out.resize(kFirst);
    out[2] = Tensor(number_);
    origins_.clear();
    try {
      const std::int64_t drawn = fetch_batch(input(), context_, size_, ended_,
                                             [&](Element& element) { add(element, out); });
      out[1] = Tensor(drawn);
      out[3] = origins_.places();
      return drawn;
    } catch (const CancelledError&) {
      throw;
    } catch (...) {
      ++number_;
      put_error(std::current_exception(), out);
      return -1;
    }
  }

  void add(Element& element, Element& out) {
    const Origin origin = input().origin();
    if (out.size() == kFirst) {
      components_ = element.size();
      first_ = origin;
    } else if (element.size() != components_) {
      throw InvalidArgumentError(cat(
          "Cannot batch elements with different numbers of components. First element had ",
          components_, " and element ", (out.size() - kFirst) / (components_ + 1), " had ",
          element.size(), ".\n\tin batch, element ", number_, describe_mismatch(origin, first_)));
    }
    for (Tensor& tensor : element) out.push_back(std::move(tensor));
    out.push_back(origins_.add(origin));
  }

  const IterationContext context_;
  const std::int64_t size_;
  const bool drop_remainder_;
  OriginTensors origins_;
  Origin first_;  // of the batch's first element
  bool ended_ = false;
  std::int64_t number_ = 0;
  std::size_t components_ = 0;
  BatchRows rows_{size_};
};

Element joined(const Element& parts) {
  if (parts[0].item<std::int64_t>() != kParts) return parts;
  const auto count = static_cast<std::size_t>(parts[1].item<std::int64_t>());
  Element out;
  const auto width = (parts.size() - kFirst) / count;  // with the name of the origin
  std::size_t at = 0;
  try {
    Stacker stacker(static_cast<std::int64_t>(count));
    Element element;
    for (; at < count; ++at) {
      const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(kFirst + at * width);
      element.assign(begin, begin + static_cast<std::ptrdiff_t>(width - 1));
      stacker.add(element);
    }
    stacker.finish(out);
    out.insert(out.begin(), Tensor(kWhole));
  } catch (...) {
    const auto origin = [&](std::size_t i) {
      return OriginTensors::read(parts[kFirst + (i + 1) * width - 1], parts[3], i);
    };
    const std::string line = cat("in batch, element ", parts[2].item<std::int64_t>(),
                                 describe_mismatch(origin(std::min(at, count - 1)), origin(0)));
    put_error(with_line(std::current_exception(), line), out);
  }
  return out;
}

class ParallelBatchIterator final : public UnaryIterator {
 public:
  using UnaryIterator::UnaryIterator;

  bool next(Element& out) override {
    if (!input().next(out)) return false;
    const std::int64_t code = out[0].item<std::int64_t>();
    if (code != kWhole) throw_error(static_cast<Code>(code), out[1].item<std::string>());
    out.erase(out.begin());
    return true;
  }

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("ParallelBatch");
    input().visit_state(state);
  }
};

// The spec and number of elements are those of the serial form.
class ParallelBatchDataset final : public UnaryDataset {
 public:
  ParallelBatchDataset(DatasetRef input, DatasetRef serial, std::int64_t size, BatchOptions options)
      : UnaryDataset(input),
        serial_(std::move(serial)),
        collected_(std::move(input), "Collect", size, options.drop_remainder),
        size_(size),
        options_(options),
        join_([](const Element& parts) { return joined(parts); }) {}

  std::string name() const override { return "ParallelBatch"; }
  Tensor as_op() const override {
    return dataset_op("ParallelBatchDataset",
                      {input().as_op(), Tensor(size_), Tensor(options_.num_parallel_calls),
                       Tensor(options_.drop_remainder)},
                      element_spec(),
                      {{"deterministic", deterministic_attr(options_.deterministic)}});
  }
  std::string parameters() const override { return serial_->parameters(); }
  const ElementSpec& element_spec() const override { return serial_->element_spec(); }
  std::int64_t cardinality() const override { return serial_->cardinality(); }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    const std::int64_t calls = context.threads(options_.num_parallel_calls);
    const bool ordered =
        options_.deterministic.value_or(context.options().deterministic.value_or(true));
    return std::make_unique<ParallelBatchIterator>(
        make_parallel_map(collected_, join_, calls, ordered, context, {}, nullptr));
  }

 private:
  const DatasetRef serial_;
  const GroupDataset<CollectIterator> collected_;
  const std::int64_t size_;
  const BatchOptions options_;
  const ElementFn join_;
};

}  // namespace

Dataset parallel_batch(const Dataset& input, std::int64_t size, const BatchOptions& options) {
  if (options.num_parallel_calls < kAutotune) {
    throw InvalidArgumentError(cat(
        "num_parallel_calls must be greater than zero, or kAutotune, or 0 to make batches where "
        "they are consumed; got ",
        options.num_parallel_calls, "."));
  }
  const Dataset serial = input.batch(size, {.drop_remainder = options.drop_remainder});
  return make_dataset<ParallelBatchDataset>(base_of(input), serial.base(), size, options);
}

}  // namespace tandem::data
