#pragma once

#include <memory>
#include <mutex>

#include "tandem/data/dataset_base.h"
#include "tandem/data/element.h"
#include "tandem/data/stages/element_program.h"

namespace tandem::data {

/// What a filter asks of elements, as a plan where that pays. Usable from any thread.
class Condition {
 public:
  /// A condition on elements of `input`, which has to outlive it.
  Condition(ElementPredicate predicate, const DatasetBase& input);

  bool test(const Element& element) const;
  const ElementPredicate& predicate() const { return predicate_; }
  /// A program whose one result is a scalar of dtype bool, traced when first asked for; null where
  /// the predicate cannot be traced. A short one is there too, though `test` calls the predicate.
  const std::shared_ptr<const ElementProgram>& program() const;
  /// Whether it may draw random numbers.
  bool may_draw() const { return !program() || program()->may_draw(); }

 private:
  void trace() const;

  const ElementPredicate predicate_;
  const DatasetBase& input_;
  mutable std::once_flag tracing_;
  mutable std::shared_ptr<const ElementProgram> program_;
  mutable bool pays_ = false;
};

}  // namespace tandem::data
