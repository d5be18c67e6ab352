#include "tandem/kernels/cpu/onednn/program_end.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <dnnl.h>

#include "tandem/core/error.h"

namespace tandem::cpu::onednn {
namespace {

std::atomic<bool> g_ends{false};
std::atomic<int> g_making{0};
std::atomic<std::thread::id> g_ends_on{};

// Runs before the library's static objects are destroyed: it was registered after they were made.
void end_making() {
  if (g_ends.exchange(true, std::memory_order_seq_cst)) return;
  g_ends_on.store(std::this_thread::get_id());
  // A primitive takes milliseconds to make.
  while (g_making.load(std::memory_order_seq_cst) != 0)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

// Making a primitive may make static objects, so the handler is registered again. The library has
// some hundred of them, all made with the first primitives of their kinds.
void register_handler() {
  constexpr int kMax = 1024;
  static std::atomic<int> registered{0};
  if (registered.load(std::memory_order_relaxed) < kMax && registered.fetch_add(1) < kMax)
    std::atexit(end_making);
}

// The library's cache of primitives, which the making of each of them locks, is made with the first
// one. Were the program to end while that goes on, the cache would be destroyed under it, since the
// handler above is registered only afterwards: so the cache is made, and the handler registered,
// before.
void make_cache() {
  static const bool made = [] {
    int capacity = 0;
    dnnl_get_primitive_cache_capacity(&capacity);
    std::atexit(end_making);
    return true;
  }();
  static_cast<void>(made);
}

bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

bool is_detached() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  int state = PTHREAD_CREATE_JOINABLE;
  pthread_attr_getdetachstate(&attributes, &state);
  pthread_attr_destroy(&attributes);
  return state == PTHREAD_CREATE_DETACHED;
}

}  // namespace

MakingScope::MakingScope(std::uint64_t calls_before) : first_(calls_before < 16) {
  if (first_) make_cache();
  g_making.fetch_add(1, std::memory_order_seq_cst);
  allowed_ = !g_ends.load(std::memory_order_seq_cst);
}

MakingScope::~MakingScope() {
  if (allowed_ && first_) register_handler();
  g_making.fetch_sub(1, std::memory_order_seq_cst);
}

bool program_ends_here() { return g_ends_on.load() == std::this_thread::get_id(); }

void stop_at_program_end() {
  if (!g_ends.load(std::memory_order_seq_cst)) return;
  while (!program_ends_here() && (is_main_thread() || is_detached()))
    std::this_thread::sleep_for(std::chrono::hours(1));
  throw CancelledError("The program ends: nothing can be made ready for the first time any more.");
}

}  // namespace tandem::cpu::onednn
