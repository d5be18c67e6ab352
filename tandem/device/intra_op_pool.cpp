#include "tandem/device/intra_op_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "tandem/core/error.h"
#include "tandem/core/flush_denormals.h"
#include "tandem/core/program_end.h"
#include "tandem/device/serial_kernel_scope.h"

namespace tandem {
namespace {

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

thread_local std::uint64_t t_uses = 0;
thread_local bool t_alone = false;

// How long a worker that has just worked looks out for more before it sleeps: longer than the gaps
// between the kernels of a training step, short against anything a person would notice.
constexpr auto kSpin = std::chrono::microseconds(100);

}  // namespace

// A job is open for joining while `job` points to it; `generation` notifies sleepers of a new one.
// Workers count themselves in before they touch the job and out afterwards; the caller closes the
// job and waits until all are out, so the job's callable and counters live on its stack safely.
struct IntraOpPool::State {
  // Every thread begins with a stretch of its own, the same one for the same sizes, so that what a
  // kernel left in a core's cache is found there by the next; then it helps the others.
  struct Job {
    const RangeFn* fn = nullptr;
    std::int64_t pieces = 0;
    std::int64_t count = 0;
    std::mutex error_mutex;
    std::exception_ptr error;

    void run_piece(std::int64_t i) {
      const std::int64_t base = count / pieces, extra = count % pieces;
      const std::int64_t begin = i * base + std::min(i, extra);
      const std::int64_t end = begin + base + (i < extra ? 1 : 0);
      try {
        (*fn)(begin, end);
      } catch (...) {
        std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
      }
    }

    void rethrow() const {
      if (!error) return;
      try {
        std::rethrow_exception(error);
      } catch (const CancelledError&) {
        // Workers cannot stop for good while the program ends, their caller perhaps can.
        stop_at_program_end();
        throw;
      }
    }
  };

  // The pieces of one thread that nothing has begun: alone in its cache line.
  struct alignas(64) Stretch {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  explicit State(int threads) : stretches(static_cast<std::size_t>(threads)) {}

  void open(const Job& new_job) {
    const auto threads = static_cast<std::int64_t>(stretches.size());
    for (std::int64_t t = 0; t < threads; ++t) {
      Stretch& stretch = stretches[static_cast<std::size_t>(t)];
      stretch.next.store(begin_of(t, new_job.pieces, threads), std::memory_order_relaxed);
      stretch.end = begin_of(t + 1, new_job.pieces, threads);
    }
  }
  static std::int64_t begin_of(std::int64_t t, std::int64_t pieces, std::int64_t threads) {
    return pieces / threads * t + std::min(pieces % threads, t);
  }

  void work(Job& open_job, std::size_t thread) {
    for (std::size_t k = 0; k < stretches.size(); ++k) {
      Stretch& stretch = stretches[(thread + k) % stretches.size()];
      while (stretch.next.load(std::memory_order_relaxed) < stretch.end) {
        const std::int64_t i = stretch.next.fetch_add(1, std::memory_order_relaxed);
        if (i < stretch.end) open_job.run_piece(i);
      }
    }
  }

  std::atomic<bool> leased{false};  // by the caller that has the workers
  std::atomic<Job*> job{nullptr};
  std::atomic<int> inside{0};
  std::atomic<std::uint64_t> generation{0};
  std::atomic<bool> stop{false};
  std::atomic<int> sleepers{0};
  std::mutex sleep_mutex;
  std::condition_variable wake;
  std::vector<std::thread> workers;
  std::vector<Stretch> stretches;  // of the open job; the caller's is the first

  void worker(std::size_t thread) {
    const ScopedFlushDenormals flush;
    std::uint64_t seen = 0;
    for (;;) {
      std::uint64_t now = generation.load(std::memory_order_acquire);
      if (now == seen) {
        const auto until = std::chrono::steady_clock::now() + kSpin;
        for (int i = 0; now == seen; ++i) {
          if (stop.load(std::memory_order_relaxed)) return;
          pause();
          now = generation.load(std::memory_order_acquire);
          if ((i & 63) == 63 && std::chrono::steady_clock::now() > until) break;
        }
      }
      if (now == seen) {
        std::unique_lock lock(sleep_mutex);
        sleepers.fetch_add(1);
        wake.wait(lock, [&] { return stop.load() || generation.load() != seen; });
        sleepers.fetch_sub(1);
        if (stop.load()) return;
        continue;
      }
      seen = now;
      inside.fetch_add(1, std::memory_order_seq_cst);
      if (Job* open_job = job.load(std::memory_order_seq_cst)) work(*open_job, thread);
      inside.fetch_sub(1, std::memory_order_release);
    }
  }

  void end() {
    {
      std::lock_guard lock(sleep_mutex);
      stop.store(true);
    }
    wake.notify_all();
    for (std::thread& w : std::exchange(workers, {})) {
      // A kernel that ends the program, or destroys its runtime, may run on a worker.
      if (w.get_id() == std::this_thread::get_id()) {
        w.detach();
      } else {
        w.join();
      }
    }
  }

  void run(Job& new_job) {
    ++t_uses;
    open(new_job);
    job.store(&new_job, std::memory_order_seq_cst);
    generation.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) > 0) {
      std::lock_guard lock(sleep_mutex);
      wake.notify_all();
    }
    work(new_job, 0);
    job.store(nullptr, std::memory_order_seq_cst);
    while (inside.load(std::memory_order_seq_cst) != 0) pause();
  }
};

SerialKernelScope::SerialKernelScope() : before_(t_alone) { t_alone = true; }
SerialKernelScope::~SerialKernelScope() { t_alone = before_; }

std::uint64_t IntraOpPool::uses_by_this_thread() { return t_uses; }

IntraOpPool::IntraOpPool(int threads)
    : threads_(std::max(threads, 1)), state_(std::make_shared<State>(threads_)) {
  try {
    for (std::size_t i = 1; i < static_cast<std::size_t>(threads_); ++i)
      state_->workers.emplace_back([s = state_, i] { s->worker(i); });
  } catch (const std::system_error& error) {
    state_->end();
    throw ResourceExhaustedError(
        cat("Could not start ", threads_, " threads for the inside of ops: ", error.what()));
  }
}

IntraOpPool::~IntraOpPool() { state_->end(); }
void IntraOpPool::stop() { state_->end(); }

void IntraOpPool::split(std::int64_t count, double cost, RangeFn fn) {
  if (t_alone || state_->leased.exchange(true, std::memory_order_acquire)) return fn(0, count);
  // A few pieces a thread even out unequal speeds; each still has to be worth its share of the
  // overhead.
  const auto worthwhile =
      static_cast<std::int64_t>(static_cast<double>(count) * cost / (kWorthwhile / 4)) + 1;
  State::Job job;
  job.fn = &fn;
  job.count = count;
  job.pieces = std::min({count, worthwhile, std::int64_t{4} * threads_});
  state_->run(job);
  state_->leased.store(false, std::memory_order_release);
  job.rethrow();
}

void IntraOpPool::for_each_piece(std::int64_t pieces, RangeFn fn) {
  if (pieces <= 0) return;
  if (threads_ == 1 || pieces == 1 || t_alone ||
      state_->leased.exchange(true, std::memory_order_acquire)) {
    for (std::int64_t i = 0; i < pieces; ++i) fn(i, i + 1);
    return;
  }
  State::Job job;
  job.fn = &fn;
  job.count = pieces;
  job.pieces = pieces;
  state_->run(job);
  state_->leased.store(false, std::memory_order_release);
  job.rethrow();
}

}  // namespace tandem
