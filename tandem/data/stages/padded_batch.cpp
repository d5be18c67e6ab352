#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/stages/padding.h"

namespace tandem::data {
namespace {

// Describes an element that does not fit the first one of a batch.
std::string describe_misfit(const Origins& origins, std::size_t misfit) {
  return describe_mismatch(origins.at(misfit), misfit == 0 ? Origin() : origins.at(0));
}

class PaddedBatchIterator final : public UnaryIterator {
 public:
  PaddedBatchIterator(std::unique_ptr<IteratorBase> input, std::int64_t size, bool drop_remainder,
                      const Padding& padding, IterationContext context)
      : UnaryIterator(std::move(input)),
        size_(size),
        drop_remainder_(drop_remainder),
        padding_(padding),
        context_(std::move(context)) {}

  bool next(Element& out) override {
    if (ended_) return false;
    origins_.clear();
    std::size_t count = 0;
    while (static_cast<std::int64_t>(count) < size_) {
      if (count == elements_.size()) elements_.emplace_back();
      if (!input().next(elements_[count])) {
        ended_ = true;
        break;
      }
      origins_.add(count++, input().origin());
      context_.check();
    }
    if (count == 0 || (ended_ && drop_remainder_)) return false;
    const std::span<Element> batch = std::span(elements_).first(count);
    const std::int64_t number = number_++;
    std::size_t misfit = 0;
    try {
      padding_.join(batch, -1, out, misfit);
    } catch (...) {
      throw_stage_error("padded_batch", number, describe_misfit(origins_, misfit));
    }
    for (Element& element : batch) element.clear();
    return true;
  }

  Origin origin() const override { return of_several(origins_.at(0)); }

  void visit_state(StateArchive& state) override {
    state.stage(cat("PaddedBatch of ", size_));
    state.value(ended_);
    state.value(number_);
    input().visit_state(state);
  }

 private:
  const std::int64_t size_;
  const bool drop_remainder_;
  const Padding& padding_;
  std::vector<Element> elements_;  // of the batch; then nothing, in memory that serves again
  Origins origins_;                // of the batch's elements
  bool ended_ = false;
  std::int64_t number_ = 0;
  const IterationContext context_;
};

class PaddedBatchDataset final : public UnaryDataset {
 public:
  PaddedBatchDataset(DatasetRef input, std::int64_t size, bool drop_remainder, Padding padding)
      : UnaryDataset(std::move(input)),
        size_(size),
        drop_remainder_(drop_remainder),
        padding_(std::move(padding)) {}
  std::string name() const override { return "PaddedBatch"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<PaddedBatchIterator>(input().iterator(context), size_, drop_remainder_,
                                                 padding_, context);
  }
  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      return padding_.batch_spec(input().element_spec(),
                                 drop_remainder_ ? size_ : PartialShape::kUnknown);
    });
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    if (n < 0) return n;
    return n / size_ + (n % size_ == 0 || drop_remainder_ ? 0 : 1);
  }

 private:
  const std::int64_t size_;
  const bool drop_remainder_;
  const Padding padding_;
  LazySpec spec_;
};

// Elements of one bucket at a time are joined: each lies below one of the boundaries.
class BucketIterator final : public UnaryIterator {
 public:
  struct Setting {
    ElementNumber length;
    std::vector<std::int64_t> boundaries;
    std::vector<std::int64_t> sizes;
    Padding padding;
    BucketOptions options;
  };
  BucketIterator(std::unique_ptr<IteratorBase> input, const Setting& setting,
                 IterationContext context)
      : UnaryIterator(std::move(input)),
        setting_(setting),
        buckets_(setting.sizes.size()),
        context_(std::move(context)) {}

  bool next(Element& out) override {
    while (!input_ended_) {
      if (spare_.empty()) spare_.emplace_back();
      if (!input().next(spare_.back())) {
        input_ended_ = true;
        break;
      }
      context_.check();
      const std::size_t at = bucket_of(spare_.back());
      Bucket& bucket = buckets_[at];
      bucket.origins.add(bucket.elements.size(), input().origin());
      bucket.elements.push_back(std::move(spare_.back()));
      spare_.pop_back();
      if (static_cast<std::int64_t>(bucket.elements.size()) == setting_.sizes[at]) {
        give(at, out);
        return true;
      }
    }
    for (; left_ < buckets_.size() && !setting_.options.drop_remainder; ++left_) {
      if (buckets_[left_].elements.empty()) continue;
      give(left_, out);
      return true;
    }
    return false;
  }

  Origin origin() const override { return of_several(first_); }

  void visit_state(StateArchive& state) override {
    state.stage("BucketBySequenceLength");
    const std::int64_t count = state.length(buckets_.size());
    state.require(count == static_cast<std::int64_t>(buckets_.size()), "it has other buckets");
    for (Bucket& bucket : buckets_) {
      state.value(bucket.elements);
      bucket.origins.visit_state(state);
    }
    state.value(number_);
    state.value(input_ended_);
    state.value(left_);
    input().visit_state(state);
  }

 private:
  struct Bucket {
    std::vector<Element> elements;
    Origins origins;
  };

  // Empties a bucket however its batch ends; the memory of its elements serves again.
  struct Emptying {
    Bucket& bucket;
    std::vector<Element>& spare;
    ~Emptying() {
      for (Element& element : bucket.elements) element.clear();
      if (spare.size() < bucket.elements.size()) spare.swap(bucket.elements);
      bucket.elements.clear();
      bucket.origins.clear();
    }
  };

  std::size_t bucket_of(const Element& element) {
    const std::int64_t number = number_++;
    try {
      const std::int64_t length = setting_.length(element);
      std::size_t at = 0;
      while (at < setting_.boundaries.size() && length >= setting_.boundaries[at]) ++at;
      if (setting_.options.pad_to_bucket_boundary && at == setting_.boundaries.size()) {
        throw InvalidArgumentError(
            cat("When pad_to_bucket_boundary=True, elements must have length < "
                "max(bucket_boundaries), ",
                at == 0 ? 0 : setting_.boundaries.back(), ", but one has length ", length, "."));
      }
      return at;
    } catch (...) {
      throw_stage_error("bucket_by_sequence_length", number, origin_text(input().origin()));
    }
  }

  void give(std::size_t at, Element& out) {
    Bucket& bucket = buckets_[at];
    const Emptying emptying{bucket, spare_};
    first_ = bucket.origins.at(0);
    std::size_t misfit = 0;
    try {
      if (setting_.options.no_padding) check_alike(bucket.elements, misfit);
      const std::int64_t filled =
          setting_.options.pad_to_bucket_boundary && !setting_.options.no_padding
              ? setting_.boundaries[at] - 1
              : -1;
      setting_.padding.join(bucket.elements, filled, out, misfit);
    } catch (...) {
      throw_stage_error("bucket_by_sequence_length", number_ - 1,
                        describe_misfit(bucket.origins, misfit));
    }
  }

  static void check_alike(const std::vector<Element>& elements, std::size_t& misfit) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      misfit = i;
      for (std::size_t c = 0; c < elements[i].size() && c < elements[0].size(); ++c) {
        if (elements[i][c].shape() == elements[0][c].shape()) continue;
        throw InvalidArgumentError(cat("Cannot batch tensors with different shapes in component ",
                                       c, ". First element had shape ", elements[0][c].shape(),
                                       " and element ", i, " had shape ", elements[i][c].shape(),
                                       "."));
      }
    }
  }

  const Setting& setting_;
  std::vector<Bucket> buckets_;
  std::vector<Element> spare_;  // nothing, in memory that serves again
  Origin first_;                // of the first element of the batch last given
  std::int64_t number_ = 0;
  bool input_ended_ = false;
  std::size_t left_ = 0;  // after the end: the first bucket that may hold something
  IterationContext context_;
};

class BucketDataset final : public UnaryDataset {
 public:
  BucketDataset(DatasetRef input, BucketIterator::Setting setting)
      : UnaryDataset(std::move(input)), setting_(std::move(setting)) {}
  std::string name() const override { return "BucketBySequenceLength"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<BucketIterator>(input().iterator(context), setting_, context);
  }
  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      return setting_.padding.batch_spec(input().element_spec(), PartialShape::kUnknown);
    });
  }
  std::int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : kUnknown; }

 private:
  const BucketIterator::Setting setting_;
  LazySpec spec_;
};

}  // namespace

Dataset Dataset::padded_batch(std::int64_t size, PaddedBatchOptions options) const {
  if (size <= 0) {
    throw InvalidArgumentError(cat("Batch size must be greater than zero, got ", size, "."));
  }
  Padding padding(std::move(options.padded_shapes), std::move(options.padding_values));
  if (base_of(*this)->num_components() >= 0) padding.check(base_->element_spec());
  return make_dataset<PaddedBatchDataset>(base_, size, options.drop_remainder, std::move(padding));
}

Dataset Dataset::bucket_by_sequence_length(ElementNumber length,
                                           std::vector<std::int64_t> boundaries,
                                           std::vector<std::int64_t> batch_sizes,
                                           BucketOptions options) const {
  if (batch_sizes.size() != boundaries.size() + 1) {
    throw InvalidArgumentError(
        cat("`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but there are ",
            batch_sizes.size(), " sizes and ", boundaries.size(), " boundaries."));
  }
  for (const std::int64_t size : batch_sizes) {
    if (size <= 0) {
      throw InvalidArgumentError(cat("Batch size must be greater than zero, got ", size, "."));
    }
  }
  for (std::size_t i = 1; i < boundaries.size(); ++i) {
    if (boundaries[i] > boundaries[i - 1]) continue;
    throw InvalidArgumentError(cat("bucket_boundaries must grow, but ", boundaries[i], " follows ",
                                   boundaries[i - 1], "."));
  }
  Padding padding(options.padded_shapes, options.padding_values);
  if (base_of(*this)->num_components() >= 0) padding.check(base_->element_spec());
  return make_dataset<BucketDataset>(
      base_,
      BucketIterator::Setting{std::move(length), std::move(boundaries), std::move(batch_sizes),
                              std::move(padding), std::move(options)});
}

}  // namespace tandem::data
