#include "tandem/kernels/cuda/support/host_model.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string_view>
#include <utility>

#include "tandem/kernels/cuda/support/host_model_stacks.h"

#if TANDEM_ADDRESS_SANITIZER
#include <cstdio>

#include <sanitizer/asan_interface.h>
#endif

namespace tandem::cuda::host {
namespace {

constexpr unsigned kWarpSize = 32;

bool reversed() {
  static const bool is_reversed = [] {
    const char* text = std::getenv("TANDEM_TEST_CUDA_ORDER");
    return text && std::string_view(text) == "reversed";
  }();
  return is_reversed;
}

// The nth of `count` to take its turn.
std::size_t turn(std::size_t nth, std::size_t count) { return reversed() ? count - 1 - nth : nth; }

enum class State : std::uint8_t { kReady, kAtBlockBarrier, kAtWarp, kDone };

struct GpuThread {
  ThreadPlace place;
  State state = State::kReady;
  unsigned mask = 0;  // of the lanes it waits for
  boost::context::fiber parked;
  Stack stack;
};

// What the lanes of a warp exchange. Two buffers in turn: a lane may begin the next exchange while
// others still read the last one, but none can be two ahead.
struct Warp {
  std::uint64_t values[2][kWarpSize] = {};
  unsigned turn[kWarpSize] = {};
  std::uint64_t epoch = 1;  // advances whenever lanes have met
};

// One block while it runs.
class Block {
 public:
  Block(const char* kernel, Dim3 grid, Dim3 block, std::size_t shared_bytes,
        const std::function<void()>& body, std::uint64_t id)
      : kernel_(kernel),
        grid_(grid),
        size_(block),
        body_(body),
        id_(id),
        threads_(block.count()),
        warps_((block.count() + kWarpSize - 1) / kWarpSize),
        shared_(shared_bytes) {}

  void run(Dim3 at) {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const auto n = static_cast<unsigned>(i);
      threads_[i].place = {
          {n % size_.x, n / size_.x % size_.y, n / size_.x / size_.y}, at, size_, grid_, n};
    }
    while (done_ < threads_.size() && !failure_) {
      if (!resume_ready() && !failure_) throw KernelFault(stuck());
    }
    if (failure_) std::rethrow_exception(failure_);
  }

  GpuThread& current() { return *current_; }
  Warp& warp_of(const GpuThread& t) { return warps_[t.place.linear / kWarpSize]; }
  std::uint64_t id() const { return id_; }
  std::uint64_t epoch() const { return epoch_; }
  std::byte* shared() { return shared_.data(); }
  const char* kernel() const { return kernel_; }

  // Parks the running thread in `state`; returns when the scheduler resumes it.
  void park(State state, unsigned mask) {
    GpuThread& self = *current_;
    self.state = state;
    self.mask = mask;
    scheduler_stack_.enter(&self.stack);
    scheduler_ = std::move(scheduler_).resume();
    self.stack.entered(&scheduler_stack_);
    if (ending_) throw Ended();
  }

  // Unwinds the fibers of threads that wait.
  void end() {
    ending_ = true;
    for (GpuThread& t : threads_) {
      if (!t.parked) continue;
      current_ = &t;
      go_to(t);  // park throws Ended there
    }
  }

  std::string where(const ThreadPlace& p) const {
    std::ostringstream text;
    text << "kernel " << kernel_ << ", block (" << p.block.x << ", " << p.block.y << ", "
         << p.block.z << "), thread (" << p.thread.x << ", " << p.thread.y << ", " << p.thread.z
         << ")";
    return text.str();
  }

 private:
  struct Ended {};

  // Resumes each thread that may go on once. False if there was none.
  bool resume_ready() {
    release_warps();
    release_block();
    bool any = false;
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      GpuThread& t = threads_[turn(i, threads_.size())];
      if (t.state != State::kReady) continue;
      any = true;
      resume(t);
      if (failure_) return true;
    }
    return any;
  }

  void resume(GpuThread& t) {
    current_ = &t;
    if (!t.parked) {
      t.parked = make_fiber(t.stack, [this, &t](boost::context::fiber&& from) {
        t.stack.entered(&scheduler_stack_);
        scheduler_ = std::move(from);
        try {
          body_();
        } catch (const Ended&) {
        } catch (...) {
          if (!failure_) failure_ = std::current_exception();
        }
        t.state = State::kDone;
        ++done_;
        scheduler_stack_.enter(nullptr);
        return std::move(scheduler_);
      });
    }
    go_to(t);
  }

  void go_to(GpuThread& t) {
    t.stack.enter(&scheduler_stack_);
    boost::context::fiber back = std::move(t.parked).resume();
    scheduler_stack_.entered(nullptr);
    // A thread that waits has left itself in `back`; one that is done leaves nothing.
    t.parked = std::move(back);
  }

  void release_warps() {
    for (std::size_t first = 0; first < threads_.size(); first += kWarpSize) {
      const std::size_t end = std::min(first + kWarpSize, threads_.size());
      for (std::size_t i = first; i < end; ++i) {
        if (threads_[i].state != State::kAtWarp) continue;
        const unsigned mask = threads_[i].mask;
        bool all = true;
        for (std::size_t lane = 0; lane < kWarpSize && all; ++lane) {
          if (((mask >> lane) & 1) == 0) continue;
          all = first + lane < end && threads_[first + lane].state == State::kAtWarp &&
                threads_[first + lane].mask == mask;
        }
        if (!all) continue;
        ++warps_[first / kWarpSize].epoch;
        for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
          if ((mask >> lane) & 1) threads_[first + lane].state = State::kReady;
        }
      }
    }
  }

  void release_block() {
    for (const GpuThread& t : threads_) {
      if (t.state != State::kAtBlockBarrier) return;
    }
    ++epoch_;
    for (GpuThread& t : threads_) t.state = State::kReady;
  }

  std::string stuck() const {
    std::size_t at_block = 0, at_warp = 0;
    const GpuThread* one = nullptr;
    for (const GpuThread& t : threads_) {
      at_block += t.state == State::kAtBlockBarrier ? 1 : 0;
      at_warp += t.state == State::kAtWarp ? 1 : 0;
      if (!one && t.state != State::kDone) one = &t;
    }
    std::ostringstream text;
    if (at_warp > 0) {
      text << "A warp operation is reached by some lanes of its mask only";
    } else {
      text << "A barrier is reached by " << at_block << " of " << threads_.size()
           << " threads only";
    }
    text << ": " << where(one->place) << " waits for ever.";
    return text.str();
  }

  const char* kernel_;
  Dim3 grid_, size_;
  const std::function<void()>& body_;
  std::uint64_t id_;
  std::uint64_t epoch_ = 1;
  std::vector<GpuThread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::byte> shared_;
  boost::context::fiber scheduler_;
  Stack scheduler_stack_;
  GpuThread* current_ = nullptr;
  std::size_t done_ = 0;
  std::exception_ptr failure_;
  bool ending_ = false;
};

thread_local Block* running = nullptr;

Block& block() {
  if (!running) throw std::logic_error("This is for kernels that run on the host.");
  return *running;
}

#if TANDEM_ADDRESS_SANITIZER

// Follows each report of AddressSanitizer's.
void name_thread(const char*) {
  if (!running) return;
  const ThreadPlace& at = running->current().place;
  std::fprintf(stderr,
               "That is an access of kernel %s, block (%u, %u, %u), thread (%u, %u, %u), beyond "
               "what it may use.\n",
               running->kernel(), at.block.x, at.block.y, at.block.z, at.thread.x, at.thread.y,
               at.thread.z);
}

void name_threads_in_reports() {
  [[maybe_unused]] static const bool once = [] {
    __asan_set_error_report_callback(name_thread);
    return true;
  }();
}

#else

void name_threads_in_reports() {}

#endif

}  // namespace

const ThreadPlace& place() { return block().current().place; }

void run_grid(const char* kernel, Dim3 grid, Dim3 size, std::size_t shared_bytes,
              const std::function<void()>& body) {
  if (size.count() == 0 || size.count() > 1024 || grid.count() == 0 || grid.y > 65535 ||
      grid.z > 65535) {
    std::ostringstream text;
    text << "A launch of " << kernel << " with " << grid.x << " x " << grid.y << " x " << grid.z
         << " blocks of " << size.count() << " threads is more (or less) than a GPU takes.";
    throw KernelFault(text.str());
  }
  name_threads_in_reports();
  thread_local std::uint64_t blocks = 0;
  for (std::size_t i = 0; i < grid.count(); ++i) {
    const std::size_t at = turn(i, grid.count());
    Block one(kernel, grid, size, shared_bytes, body, ++blocks);
    running = &one;
    try {
      one.run({static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
               static_cast<unsigned>(at / grid.x / grid.y)});
    } catch (...) {
      one.end();
      running = nullptr;
      throw;
    }
    running = nullptr;
  }
}

void block_barrier() { block().park(State::kAtBlockBarrier, 0); }

void warp_barrier(unsigned mask) { warp_exchange(mask, 0); }

const std::uint64_t* warp_exchange(unsigned mask, std::uint64_t bits) {
  Block& b = block();
  GpuThread& self = b.current();
  Warp& warp = b.warp_of(self);
  const unsigned lane = self.place.linear % kWarpSize;
  if (((mask >> lane) & 1) == 0) {
    throw KernelFault(
        "A lane calls a warp operation whose mask leaves it out: " + b.where(self.place) + ".");
  }
  std::uint64_t* values = warp.values[warp.turn[lane]++ % 2];
  values[lane] = bits;
  b.park(State::kAtWarp, mask);
  return values;
}

std::byte* dynamic_shared() { return block().shared(); }

// ---- Races ----

AccessLog::Entry& AccessLog::entry(std::size_t index) {
  if (entries_.size() <= index) entries_.resize(index + 1);
  Entry& e = entries_[index];
  const Block& b = block();
  if (e.grid != b.id() || e.block_epoch != b.epoch()) {
    e = {};
    e.grid = b.id();
    e.block_epoch = b.epoch();
  }
  return e;
}

void AccessLog::check(const Entry&, int other, std::uint64_t warp_epoch, const char* doing,
                      const char* what, std::size_t index) {
  Block& b = block();
  const GpuThread& self = b.current();
  const auto me = static_cast<int>(self.place.linear);
  if (other == -1 || other == me) return;
  // Lanes of a warp are ordered by what they met at since.
  if (other >= 0 && other / static_cast<int>(kWarpSize) == me / static_cast<int>(kWarpSize) &&
      warp_epoch < b.warp_of(self).epoch) {
    return;
  }
  std::ostringstream text;
  text << "Shared memory " << what << '[' << index << "] is " << doing << " by "
       << b.where(self.place) << " and used by "
       << (other >= 0 ? "thread " + std::to_string(other) : std::string("others"))
       << " of its block without a barrier between.";
  throw KernelFault(text.str());
}

void AccessLog::read(const char* what, std::size_t index) {
  Entry& e = entry(index);
  check(e, e.writer, e.write_warp_epoch, "read", what, index);
  const auto me = static_cast<int>(block().current().place.linear);
  e.reader = e.reader == -1 || e.reader == me ? me : -2;
  e.read_warp_epoch = block().warp_of(block().current()).epoch;
}

void AccessLog::write(const char* what, std::size_t index) {
  Entry& e = entry(index);
  check(e, e.writer, e.write_warp_epoch, "written", what, index);
  // Several readers that all lie in this thread's warp before its last meeting are ordered too, but
  // they are not distinguished; kernels put a block barrier there.
  check(e, e.reader, e.read_warp_epoch, "written", what, index);
  e.writer = static_cast<int>(block().current().place.linear);
  e.write_warp_epoch = block().warp_of(block().current()).epoch;
  e.written_atomically = false;
}

void AccessLog::atomic(const char* what, std::size_t index) {
  Entry& e = entry(index);
  if (!e.written_atomically) check(e, e.writer, e.write_warp_epoch, "changed", what, index);
  check(e, e.reader, e.read_warp_epoch, "changed", what, index);
  const auto me = static_cast<int>(block().current().place.linear);
  e.writer = e.writer == -1 || e.writer == me ? me : -2;
  e.write_warp_epoch = block().warp_of(block().current()).epoch;
  e.written_atomically = true;
}

}  // namespace tandem::cuda::host
