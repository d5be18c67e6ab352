#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "tandem/data/dataset_base.h"
#include "tandem/data/iteration_context.h"

namespace tandem::data {

/// What several elements of its input are drawn by, for threads that make a batch of them:
/// `Iterator` takes the input's iterator, `size`, `drop_remainder` and the context.
template <class Iterator>
class GroupDataset final : public UnaryDataset {
 public:
  GroupDataset(DatasetRef input, std::string name, std::int64_t size, bool drop_remainder)
      : UnaryDataset(std::move(input)),
        name_(std::move(name)),
        size_(size),
        drop_remainder_(drop_remainder) {}
  std::string name() const override { return name_; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<Iterator>(input().iterator(context), size_, drop_remainder_, context);
  }

 private:
  const std::string name_;
  const std::int64_t size_;
  const bool drop_remainder_;
};

}  // namespace tandem::data
