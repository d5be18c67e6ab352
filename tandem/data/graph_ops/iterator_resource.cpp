#include "tandem/data/graph_ops/iterator_resource.h"

#include <utility>

#include "tandem/core/cancellation.h"
#include "tandem/core/error.h"

namespace tandem::data {

// One pass over a dataset, with the thread that makes its elements. The thread keeps it until it
// has ended, since the last handle may be dropped by what the thread calls.
struct IteratorResource::Pass : std::enable_shared_from_this<Pass> {
  explicit Pass(const Dataset& dataset) : context(thread_context()) {
    // Neither a step's end nor its client's ends an iteration.
    context.cancellation = stop;
    context.deadline = std::chrono::steady_clock::time_point::max();
    context.recorder = nullptr;
    context.recorders.clear();
    context.trace = nullptr;
    const ThreadContextScope scope(context);
    iterator.emplace(dataset.iterator());
  }

  void next(Done done) {
    {
      const MutexLock lock(mutex);
      waiting.push_back(std::move(done));
      if (running) return changed.notify_one();
      running = true;
    }
    std::thread([self = shared_from_this()] { self->run(); }).detach();
  }

  void end() {
    {
      const MutexLock lock(mutex);
      ended = true;
    }
    stop->cancel();
    changed.notify_all();
  }

  void run() {
    const ThreadContextScope scope(context);
    Element element;
    for (;;) {
      Done done;
      {
        MutexLock lock(mutex);
        while (waiting.empty() && !ended) lock.wait(changed);
        if (waiting.empty()) return;
        done = std::move(waiting.front());
        waiting.pop_front();
      }
      std::exception_ptr error;
      bool has_element = false;
      try {
        has_element = iterator->next(element);
      } catch (...) {
        error = std::current_exception();
      }
      done(error, has_element ? &element : nullptr);
      element.clear();  // what was given away is the receiver's alone
    }
  }

  const std::shared_ptr<Cancellation> stop = std::make_shared<Cancellation>();
  ThreadContext context;
  std::optional<Iterator> iterator;
  Mutex mutex;
  std::condition_variable changed;
  std::deque<Done> waiting TANDEM_GUARDED_BY(mutex);
  bool running TANDEM_GUARDED_BY(mutex) = false;
  bool ended TANDEM_GUARDED_BY(mutex) = false;
};

IteratorResource::~IteratorResource() { end(); }

std::string IteratorResource::debug_string() const {
  return cat("an iterator over elements of ", to_string(spec_));
}

void IteratorResource::begin(const Dataset& dataset) {
  const ElementSpec& given = dataset.element_spec();
  bool fits = given.size() == spec_.size();
  for (std::size_t i = 0; fits && i < given.size(); ++i) {
    fits = (given[i].dtype == spec_[i].dtype || given[i].dtype == DType::kInvalid) &&
           given[i].shape.is_compatible(spec_[i].shape);
  }
  if (!fits) {
    throw InvalidArgumentError(cat("The dataset's elements are ", to_string(given),
                                   ", but the iterator is for ", to_string(spec_), "."));
  }
  auto pass = std::make_shared<Pass>(dataset);
  {
    const MutexLock lock(mutex_);
    std::swap(pass, pass_);
  }
  if (pass) pass->end();
}

void IteratorResource::end() {
  std::shared_ptr<Pass> pass;
  {
    const MutexLock lock(mutex_);
    pass = std::move(pass_);
  }
  if (pass) pass->end();
}

void IteratorResource::next(Done done) {
  std::shared_ptr<Pass> pass;
  {
    const MutexLock lock(mutex_);
    pass = pass_;
  }
  if (!pass) {
    throw FailedPreconditionError(
        "GetNext() failed because the iterator has not been initialized. Ensure that you have run "
        "the initializer operation for this iterator before getting the next element.");
  }
  pass->next(std::move(done));
}

}  // namespace tandem::data
