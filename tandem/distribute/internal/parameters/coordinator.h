#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/cancellation.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// Gives closures to workers: each worker runs one at a time (more, where a synchronous update
/// needs them). A closure whose worker is lost goes to another one under the same number, by which
/// servers know it. Workers that do not answer are lost until they answer again. Thread-safe.
class Coordinator {
 public:
  struct Options {
    std::vector<std::pair<std::string, std::shared_ptr<Channel>>> workers = {};  ///< by task
    int replicas_to_aggregate = 0;
    /// More closures may run than an update takes, for workers that are slower than others.
    bool has_backups = false;
    std::chrono::milliseconds heartbeat_timeout{10'000};
    std::function<void(const std::string& line)> on_event = {};
  };
  explicit Coordinator(Options options);
  /// Cancels calls in progress. The channels' network must have ended them before this is gone.
  ~Coordinator();

  struct Closure {
    std::shared_ptr<const std::string> function;  ///< a RegisterClosureRequest
    std::vector<Array> inputs;
    std::int64_t number = 0;
    // Guarded by the coordinator's lock:
    bool done = false;
    std::exception_ptr error = nullptr;
    std::vector<Array> results = {};
  };

  std::shared_ptr<Closure> schedule(std::shared_ptr<const std::string> function,
                                    std::vector<Array> inputs);
  /// Numbers from this one on are not scheduled yet.
  std::int64_t next_number() const;
  /// The numbers that are scheduled and not done.
  std::vector<std::int64_t> unfinished() const;
  /// Throws the first failure. False if not everything is done after `patience`.
  bool join_for(std::chrono::milliseconds patience);
  bool done() const;
  std::vector<Array> fetch(const std::shared_ptr<Closure>& closure);
  /// Another worker, unless it is known. One that is known and has moved is reached by its channel.
  void add_worker(const std::string& task, std::shared_ptr<Channel> channel);
  /// Ends calls in progress and gives out nothing more.
  void stop();

 private:
  struct Worker {
    std::string task;
    std::shared_ptr<Channel> channel;
    bool alive = true;
    std::uint64_t incarnation = 0;
    int running = 0;
    std::shared_ptr<Cancellation> calls = std::make_shared<Cancellation>();
    std::map<const std::string*, std::string> handles = {};  // of functions
    std::chrono::steady_clock::time_point answered = std::chrono::steady_clock::now();
    bool is_asked = false;
  };
  void dispatch();
  void run(std::size_t worker, const std::shared_ptr<Closure>& closure);
  void run_registered(std::size_t worker, const std::string& handle,
                      const std::shared_ptr<Closure>& closure);
  void end(std::size_t worker, const std::shared_ptr<Closure>& closure, const Status& status,
           std::vector<Array> results);
  void lose(Worker& worker, const std::string& why) TANDEM_REQUIRES(mutex_);
  void watch();
  void ask(std::size_t worker);
  int capacity() const TANDEM_REQUIRES(mutex_);
  void report_events();

  const Options options_;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::vector<Worker> workers_ TANDEM_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<Closure>> waiting_ TANDEM_GUARDED_BY(mutex_);
  std::set<std::int64_t> unfinished_ TANDEM_GUARDED_BY(mutex_);
  std::int64_t next_number_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ TANDEM_GUARDED_BY(mutex_);
  std::vector<std::string> events_ TANDEM_GUARDED_BY(mutex_);
  // Closures beyond the capacity, where those that run wait for partners that none of them is:
  // their gradients were applied with others on one server, and not on another.
  int extra_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point progress_ TANDEM_GUARDED_BY(mutex_) =
      std::chrono::steady_clock::now();
  bool stopped_ TANDEM_GUARDED_BY(mutex_) = false;
  std::thread watcher_;
};

}  // namespace tandem::distribute
