#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "tandem/core/resource_handle.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/data/dataset.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::data {

/// An iterator that ops share. Elements are made on a thread of its own, which begins with the
/// first, so that no kernel waits for them. Thread-safe.
class IteratorResource final : public Resource {
 public:
  explicit IteratorResource(ElementSpec spec) : spec_(std::move(spec)) {}
  ~IteratorResource() override;
  std::string debug_string() const override;

  const ElementSpec& spec() const { return spec_; }
  /// Begins a dataset, in place of the one before. Throws InvalidArgumentError if its elements are
  /// others than the iterator's.
  void begin(const Dataset& dataset);
  /// Ends the iteration.
  void end();

  /// The element, or null at the end; from the iterator's thread, in the order of the calls. The
  /// element is the callee's.
  using Done = std::function<void(std::exception_ptr error, Element* element)>;
  /// Throws FailedPreconditionError if no dataset has begun.
  void next(Done done);

 private:
  struct Pass;  // of one dataset
  const ElementSpec spec_;
  Mutex mutex_;
  std::shared_ptr<Pass> pass_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::data
