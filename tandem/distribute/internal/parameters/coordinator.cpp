#include "tandem/distribute/internal/parameters/coordinator.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/closure_service.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {
namespace {

constexpr auto kStuck = std::chrono::seconds(5);

// What says that a worker is gone or was started again, and nothing of the closure.
bool is_of_worker(Code code) {
  return code == Code::kUnavailable || code == Code::kCancelled ||
         code == Code::kDeadlineExceeded || code == Code::kAborted;
}

}  // namespace

Coordinator::Coordinator(Options options) : options_(std::move(options)) {
  for (const auto& [task, channel] : options_.workers) {
    Worker& worker = workers_.emplace_back();
    worker.task = task;
    worker.channel = channel;
  }
  watcher_ = std::thread([this] { watch(); });
}

Coordinator::~Coordinator() { stop(); }

void Coordinator::stop() {
  std::vector<std::shared_ptr<Cancellation>> calls;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    waiting_.clear();
    for (const Worker& worker : workers_) calls.push_back(worker.calls);
  }
  changed_.notify_all();
  for (const auto& call : calls) call->cancel();
  if (watcher_.joinable()) watcher_.join();
}

std::shared_ptr<Coordinator::Closure> Coordinator::schedule(
    std::shared_ptr<const std::string> function, std::vector<Array> inputs) {
  const auto closure = std::make_shared<Closure>();
  closure->function = std::move(function);
  closure->inputs = std::move(inputs);
  {
    const MutexLock lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    closure->number = next_number_++;
    unfinished_.insert(closure->number);
    waiting_.push_back(closure);
  }
  dispatch();
  return closure;
}

void Coordinator::add_worker(const std::string& task, std::shared_ptr<Channel> channel) {
  {
    const MutexLock lock(mutex_);
    const bool is_known = std::any_of(workers_.begin(), workers_.end(),
                                      [&](const Worker& worker) { return worker.task == task; });
    if (is_known || stopped_) return;
    Worker& worker = workers_.emplace_back();
    worker.task = task;
    worker.channel = std::move(channel);
    events_.push_back(cat(task, " is new"));
  }
  report_events();
  dispatch();
}

std::int64_t Coordinator::next_number() const {
  const MutexLock lock(mutex_);
  return next_number_;
}

std::vector<std::int64_t> Coordinator::unfinished() const {
  const MutexLock lock(mutex_);
  return {unfinished_.begin(), unfinished_.end()};
}

// A synchronous update needs so many closures at a time, however few workers are left.
int Coordinator::capacity() const {
  const auto alive = std::count_if(workers_.begin(), workers_.end(),
                                   [](const Worker& worker) { return worker.alive; });
  if (options_.replicas_to_aggregate == 0 || alive == 0) return 1;
  return static_cast<int>((options_.replicas_to_aggregate + extra_ + alive - 1) / alive);
}

void Coordinator::dispatch() {
  for (;;) {
    std::shared_ptr<Closure> closure;
    std::size_t chosen = 0;
    {
      const MutexLock lock(mutex_);
      if (stopped_ || waiting_.empty()) return;
      const int most = capacity();
      // More than an update takes would be stale in the end, and decide by chance which come first.
      if (options_.replicas_to_aggregate > 0 && !options_.has_backups) {
        int running = 0;
        for (const Worker& worker : workers_) running += worker.running;
        if (running >= options_.replicas_to_aggregate + extra_) return;
      }
      chosen = workers_.size();
      for (std::size_t w = 0; w < workers_.size(); ++w) {
        const Worker& worker = workers_[w];
        if (!worker.alive || worker.running >= most) continue;
        if (chosen == workers_.size() || worker.running < workers_[chosen].running) chosen = w;
      }
      if (chosen == workers_.size()) return;
      closure = std::move(waiting_.front());
      waiting_.pop_front();
      ++workers_[chosen].running;
    }
    run(chosen, closure);
  }
}

void Coordinator::run(std::size_t w, const std::shared_ptr<Closure>& closure) {
  std::string handle;
  std::shared_ptr<Channel> channel;
  std::shared_ptr<Cancellation> calls;
  {
    const MutexLock lock(mutex_);
    Worker& worker = workers_[w];
    const auto known = worker.handles.find(closure->function.get());
    if (known != worker.handles.end()) handle = known->second;
    channel = worker.channel;
    calls = worker.calls;
  }
  if (!handle.empty()) return run_registered(w, handle, closure);
  Bytes request;
  request.append(*closure->function, closure->function);
  channel->call(kRegisterClosure, std::move(request), {.cancellation = calls},
                [this, w, closure](Status status, Bytes reply) {
                  proto::RegisterClosureResponse response;
                  try {
                    if (status.ok()) read_message(reply, response);
                  } catch (...) {
                    status = Status::of(std::current_exception());
                  }
                  if (!status.ok()) return end(w, closure, status, {});
                  {
                    const MutexLock lock(mutex_);
                    workers_[w].handles[closure->function.get()] = response.handle;
                  }
                  run_registered(w, response.handle, closure);
                });
}

void Coordinator::run_registered(std::size_t w, const std::string& handle,
                                 const std::shared_ptr<Closure>& closure) {
  proto::RunClosureRequest message;
  message.handle = handle;
  message.sequence = closure->number;
  std::shared_ptr<Channel> channel;
  std::shared_ptr<Cancellation> calls;
  {
    const MutexLock lock(mutex_);
    message.finished_below = unfinished_.empty() ? next_number_ : *unfinished_.begin();
    channel = workers_[w].channel;
    calls = workers_[w].calls;
  }
  Bytes request = write_message(message);
  for (const Array& input : closure->inputs) append_tensor_field(request, 4, input);
  channel->call(kRunClosure, std::move(request), {.cancellation = calls},
                [this, w, closure](Status status, Bytes reply) {
                  std::vector<Array> results;
                  try {
                    if (status.ok()) {
                      proto::RunClosureResponse response;
                      read_message(reply, response);
                      for (const std::string_view output : response.output)
                        results.push_back(read_tensor(output, reply.owner()));
                    }
                  } catch (...) {
                    status = Status::of(std::current_exception());
                  }
                  end(w, closure, status, std::move(results));
                });
}

void Coordinator::end(std::size_t w, const std::shared_ptr<Closure>& closure, const Status& status,
                      std::vector<Array> results) {
  {
    const MutexLock lock(mutex_);
    Worker& worker = workers_[w];
    --worker.running;
    progress_ = std::chrono::steady_clock::now();
    extra_ = 0;
    if (!status.ok() && is_of_worker(status.code) && !stopped_) {
      if (status.code == Code::kAborted) {
        worker.handles.clear();  // it was started again
      } else {
        lose(worker, status.message.substr(0, status.message.find('\n')));
      }
      waiting_.push_front(closure);
    } else {
      closure->done = true;
      closure->results = std::move(results);
      if (!status.ok()) {
        Status named = status;
        named.message = cat("A closure failed on ", worker.task, ": ", status.message);
        closure->error = named.error();
        if (!error_) error_ = closure->error;
        for (const auto& other : waiting_) {
          other->done = true;
          other->error = error_;
          unfinished_.erase(other->number);
        }
        waiting_.clear();
      }
      unfinished_.erase(closure->number);
    }
  }
  changed_.notify_all();
  report_events();
  dispatch();
}

void Coordinator::lose(Worker& worker, const std::string& why) {
  if (!worker.alive) return;
  worker.alive = false;
  worker.handles.clear();
  events_.push_back(cat("lost ", worker.task, " (", why, "); its closures go to others"));
}

void Coordinator::report_events() {
  std::vector<std::string> events;
  {
    const MutexLock lock(mutex_);
    events.swap(events_);
  }
  for (const std::string& event : events) {
    if (options_.on_event) options_.on_event(event);
  }
}

void Coordinator::ask(std::size_t w) {
  std::shared_ptr<Channel> channel;
  {
    const MutexLock lock(mutex_);
    if (workers_[w].is_asked) return;
    workers_[w].is_asked = true;
    channel = workers_[w].channel;
  }
  channel->call("/tensorflow.WorkerService/GetStatus", {}, {.timeout = options_.heartbeat_timeout},
                [this, w](const Status& status, Bytes reply) {
                  proto::GetStatusResponse response;
                  bool answers = status.ok();
                  try {
                    if (answers) read_message(reply, response);
                  } catch (const Error&) {
                    answers = false;
                  }
                  {
                    const MutexLock lock(mutex_);
                    Worker& worker = workers_[w];
                    worker.is_asked = false;
                    if (answers && !response.device_attributes.empty()) {
                      worker.answered = std::chrono::steady_clock::now();
                      const auto incarnation = static_cast<std::uint64_t>(
                          response.device_attributes.front().incarnation);
                      if (worker.incarnation != incarnation) {
                        if (worker.incarnation != 0)
                          events_.push_back(cat(worker.task, " was started again"));
                        worker.handles.clear();
                        worker.incarnation = incarnation;
                      } else if (!worker.alive) {
                        events_.push_back(cat(worker.task, " answers again"));
                      }
                      worker.alive = true;
                    }
                  }
                  report_events();
                  dispatch();
                });
}

void Coordinator::watch() {
  const auto pause = std::min<std::chrono::milliseconds>(options_.heartbeat_timeout / 4,
                                                         std::chrono::milliseconds(500));
  for (;;) {
    std::vector<std::shared_ptr<Cancellation>> lost;
    std::size_t count = 0;
    {
      MutexLock lock(mutex_);
      const auto until = std::chrono::steady_clock::now() + pause;
      while (!stopped_ && std::chrono::steady_clock::now() < until)
        lock.wait_until(changed_, until);
      if (stopped_) return;
      count = workers_.size();
      const auto now = std::chrono::steady_clock::now();
      if (options_.replicas_to_aggregate > 0 && !waiting_.empty() && now - progress_ > kStuck) {
        ++extra_;
        progress_ = now;
      }
      for (Worker& worker : workers_) {
        const auto silent = std::chrono::steady_clock::now() - worker.answered;
        if (!worker.alive || silent < options_.heartbeat_timeout) continue;
        lose(worker,
             cat("no answer for ",
                 std::chrono::duration_cast<std::chrono::milliseconds>(silent).count(), " ms"));
        lost.push_back(std::exchange(worker.calls, std::make_shared<Cancellation>()));
      }
    }
    for (const auto& calls : lost) calls->cancel();
    report_events();
    dispatch();
    for (std::size_t w = 0; w < count; ++w) ask(w);
  }
}

bool Coordinator::join_for(std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  MutexLock lock(mutex_);
  while (!unfinished_.empty() && !error_ && std::chrono::steady_clock::now() < until)
    lock.wait_until(changed_, until);
  if (const std::exception_ptr error = std::exchange(error_, nullptr))
    std::rethrow_exception(error);
  return unfinished_.empty();
}

bool Coordinator::done() const {
  const MutexLock lock(mutex_);
  return unfinished_.empty();
}

std::vector<Array> Coordinator::fetch(const std::shared_ptr<Closure>& closure) {
  MutexLock lock(mutex_);
  while (!closure->done && !stopped_) lock.wait(changed_);
  if (closure->error) std::rethrow_exception(closure->error);
  return closure->results;
}

}  // namespace tandem::distribute
