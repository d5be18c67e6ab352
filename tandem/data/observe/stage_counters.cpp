#include "tandem/data/observe/stage_counters.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

namespace tandem::data {
namespace {

// Never destroyed: threads may end after what is static.
struct Threads {
  std::mutex mutex;
  std::vector<const ThreadTimes*> times;
};
Threads& threads() {
  static Threads& threads = *new Threads;
  return threads;
}

}  // namespace

ThreadTimes::ThreadTimes() {
  std::lock_guard lock(threads().mutex);
  threads().times.push_back(this);
}
ThreadTimes::~ThreadTimes() {
  std::lock_guard lock(threads().mutex);
  std::erase(threads().times, this);
}

ThreadTimes& thread_times() {
  thread_local ThreadTimes times;
  return times;
}

void visit_growing(const std::function<void(const StageCounters::Count*, std::int64_t)>& found) {
  std::lock_guard lock(threads().mutex);
  for (const ThreadTimes* times : threads().times) {
    const StageCounters::Count* count = times->growing.load(std::memory_order_acquire);
    const std::int64_t since = times->since.load(std::memory_order_relaxed);
    if (count) found(count, since);
  }
}

std::int64_t bytes_of(const Element& element) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : element) {
    if (!tensor.defined()) continue;
    if (tensor.dtype() == DType::kString) {
      for (const std::string& text : tensor.array().values<std::string>()) bytes += text.size();
    } else {
      bytes += static_cast<std::size_t>(tensor.num_elements()) * dtype_size(tensor.dtype());
    }
  }
  return static_cast<std::int64_t>(bytes);
}

StageMeter::Waiting::~Waiting() {
  const std::int64_t now = clock_now(), time = now - begin_;
  thread_times().waited += time;
  if (!counters_) return;
  thread_times().grow(outer_, now);
  StageCounters::add(counters_->waited_for, time);
  thread_times().apart += time;
  IdleTime::set_apart(time);
}

StageMeter::Working::~Working() {
  if (!counters_) return;
  const std::int64_t time = timer_->end();
  count_work(*counters_, time, timer_->idle());
}

StageMeter::Drawing::~Drawing() {
  if (!counters_) return;
  const std::int64_t time = timer_->end();
  const std::int64_t waited = thread_times().waited - waited_;
  StageCounters::add(counters_->input, time - waited);
  StageCounters::add(counters_->input_waited, waited);
  if (!timer_->idle().known()) return;
  const std::int64_t idle = std::max<std::int64_t>(timer_->idle().total() - waited, 0);
  StageCounters::add(counters_->input_looked_at, time - waited);
  StageCounters::add(counters_->input_idle, std::min(idle, time - waited));
}

}  // namespace tandem::data
