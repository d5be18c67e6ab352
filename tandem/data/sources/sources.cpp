#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/dataset_base.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/sources/seekable.h"
#include "tandem/data/stages/dataset_op.h"
#include "tandem/fs/crc32c.h"

namespace tandem::data {
namespace {

class TensorsIterator final : public IteratorBase {
 public:
  explicit TensorsIterator(const Element& element) : element_(element) {}
  bool next(Element& out) override {
    if (given_) return false;
    given_ = true;
    out = element_;
    return true;
  }

  void visit_state(StateArchive& state) override {
    state.stage("Tensor");
    state.value(given_);
  }

 private:
  const Element& element_;
  bool given_ = false;
};

class TensorsDataset final : public DatasetBase {
 public:
  explicit TensorsDataset(Element element) : element_(std::move(element)) {
    for (const Tensor& tensor : element_) {
      spec_.push_back({tensor.dtype(), tensor.array().shape()});
    }
  }
  std::string name() const override { return "Tensor"; }
  Tensor as_op() const override {
    return dataset_op("TensorDataset", element_, spec_, {}, "Toutput_types");
  }
  std::string parameters() const override {
    StateArchive archive;
    Element copy = element_;
    archive.value(copy);
    return cat("crc32c=", fs::crc32c(archive.bytes()));
  }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext&) const override {
    return std::make_unique<TensorsIterator>(element_);
  }
  const ElementSpec& element_spec() const override { return spec_; }
  std::int64_t cardinality() const override { return 1; }

 private:
  const Element element_;
  ElementSpec spec_;
};

class RangeIterator final : public IteratorBase, public Seekable {
 public:
  RangeIterator(std::int64_t start, std::int64_t step, std::int64_t count)
      : value_(start), step_(step), left_(count) {}
  bool next(Element& out) override {
    if (left_ == 0) return false;
    out.clear();
    out.emplace_back(value_);
    // The step beyond the last value may overflow.
    if (--left_ > 0) value_ += step_;
    return true;
  }

  std::int64_t skip(std::int64_t count) override {
    const std::int64_t passed = std::min(count, left_);
    left_ -= passed;
    // At the end it stays at the last value. The way may be longer than 63 bits can count, not the
    // place.
    const std::int64_t steps = left_ > 0 ? passed : std::max<std::int64_t>(passed - 1, 0);
    value_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(value_) +
                                       static_cast<std::uint64_t>(steps) *
                                           static_cast<std::uint64_t>(step_));
    return passed;
  }

  void visit_state(StateArchive& state) override {
    state.stage("Range");
    const std::int64_t first = value_, count = left_;
    state.value(value_);
    state.value(left_);
    if (!state.restoring()) return;
    // Just begun, it knows where each number lies; sums that overflow are none of its own.
    const std::int64_t given = count - left_;
    std::int64_t offset = 0, value = 0;
    state.require(
        left_ >= 0 && given >= 0 &&
            !__builtin_mul_overflow(left_ > 0 ? given : std::max<std::int64_t>(given - 1, 0), step_,
                                    &offset) &&
            !__builtin_add_overflow(first, offset, &value) && value == value_,
        "its place is outside the range");
  }

 private:
  std::int64_t value_;
  const std::int64_t step_;
  std::int64_t left_;
};

class RangeDataset final : public DatasetBase {
 public:
  RangeDataset(std::int64_t start, std::int64_t step, std::int64_t count)
      : start_(start), step_(step), count_(count) {}
  std::string name() const override { return "Range"; }
  Tensor as_op() const override {
    // The number behind the last one, unless 64 bits have none.
    std::int64_t stop = 0;
    if (__builtin_mul_overflow(count_, step_, &stop) || __builtin_add_overflow(start_, stop, &stop))
      stop = step_ > 0 ? INT64_MAX : INT64_MIN;
    return dataset_op("RangeDataset", {Tensor(start_), Tensor(stop), Tensor(step_)}, spec_);
  }
  std::string parameters() const override { return cat("start=", start_, " step=", step_); }
  bool can_shard_sources() const override { return true; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return apply_file_shard(std::make_unique<RangeIterator>(start_, step_, count_), count_,
                            context);
  }
  const ElementSpec& element_spec() const override { return spec_; }
  std::int64_t cardinality() const override { return count_; }

 private:
  const std::int64_t start_;
  const std::int64_t step_;
  const std::int64_t count_;
  const ElementSpec spec_{{DType::kInt64, PartialShape::scalar()}};
};

class GeneratorIterator final : public IteratorBase {
 public:
  GeneratorIterator(const std::function<Generator()>& make, const ElementSpec& spec)
      : make_(make), spec_(spec) {}

  bool next(Element& out) override {
    if (ended_) return false;
    const std::int64_t number = number_++;
    try {
      if (!generator_) generator_ = make_();
      if (!generator_) {
        throw InvalidArgumentError(
            "`generator` must return a Callable, the function that gives its elements, but what it "
            "returned is empty.");
      }
      out.clear();
      if (generator_(out)) {
        check(out);
        return true;
      }
    } catch (...) {
      throw_stage_error("from_generator", number);
    }
    ended_ = true;
    return false;
  }

  void visit_state(StateArchive& state) override {
    state.stage("Generator");
    state.value(ended_);
    std::int64_t number = number_;
    state.value(number);
    // A function cannot be saved: it gives the elements before once more.
    Element passed;
    while (state.restoring() && !ended_ && number_ < number) {
      try {
        state.require(next(passed), "its generator ends before the place where it was saved");
      } catch (const Error&) {
        if (ended_) throw;
      }
    }
    number_ = number;
  }

 private:
  void check(const Element& element) const {
    if (element.size() != spec_.size()) {
      throw InvalidArgumentError(cat("`generator` yielded an element of ", element.size(),
                                     " components where ", to_string(spec_), " was expected."));
    }
    for (std::size_t i = 0; i < spec_.size(); ++i) {
      const Array& array = element[i].array();
      if (array.dtype() != spec_[i].dtype) {
        throw InvalidArgumentError(cat("`generator` yielded an element of dtype ", array.dtype(),
                                       " where an element of dtype ", spec_[i].dtype,
                                       " was expected, in component ", i, "."));
      }
      if (!spec_[i].shape.is_compatible(PartialShape(array.shape()))) {
        throw InvalidArgumentError(cat("`generator` yielded an element of shape ", array.shape(),
                                       " where an element of shape ", spec_[i].shape,
                                       " was expected, in component ", i, "."));
      }
    }
  }

  const std::function<Generator()>& make_;
  const ElementSpec& spec_;
  Generator generator_;
  std::int64_t number_ = 0;
  bool ended_ = false;
};

class GeneratorDataset final : public DatasetBase {
 public:
  GeneratorDataset(std::function<Generator()> make, ElementSpec spec)
      : make_(std::move(make)), spec_(std::move(spec)) {}
  std::string name() const override { return "Generator"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext&) const override {
    return std::make_unique<GeneratorIterator>(make_, spec_);
  }
  const ElementSpec& element_spec() const override { return spec_; }
  std::int64_t cardinality() const override { return kUnknown; }

 private:
  const std::function<Generator()> make_;
  const ElementSpec spec_;
};

// How many values start, start + step, … lie before stop, without overflow.
std::int64_t count_range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  const auto distance = [](std::int64_t from, std::int64_t to) {
    return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
  };
  std::uint64_t length = 0, stride = 0;
  if (step > 0) {
    if (start >= stop) return 0;
    length = distance(start, stop);
    stride = static_cast<std::uint64_t>(step);
  } else {
    if (start <= stop) return 0;
    length = distance(stop, start);
    stride = std::uint64_t{0} - static_cast<std::uint64_t>(step);
  }
  const std::uint64_t count = (length - 1) / stride + 1;
  if (count > static_cast<std::uint64_t>(INT64_MAX)) {
    throw InvalidArgumentError(cat("range(", start, ", ", stop, ", ", step,
                                   ") has more elements than 63 bits can count."));
  }
  return static_cast<std::int64_t>(count);
}

}  // namespace

Dataset from_tensors(std::vector<Tensor> components) {
  if (components.empty()) throw InvalidArgumentError("from_tensors needs at least one tensor.");
  return make_dataset<TensorsDataset>(std::move(components));
}

Dataset from_tensors(Tensor tensor) { return from_tensors(std::vector<Tensor>{std::move(tensor)}); }

Dataset range(std::int64_t stop) { return range(0, stop); }

Dataset range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  if (step == 0) throw InvalidArgumentError("step must be a non-zero integer.");
  return make_dataset<RangeDataset>(start, step, count_range(start, stop, step));
}

Dataset from_generator(std::function<Generator()> make, ElementSpec spec) {
  if (!make) throw InvalidArgumentError("`generator` must be a Callable, but it is empty.");
  if (spec.empty()) {
    throw InvalidArgumentError(
        "from_generator needs the dtype and shape of at least one component.");
  }
  return make_dataset<GeneratorDataset>(std::move(make), std::move(spec));
}

}  // namespace tandem::data
