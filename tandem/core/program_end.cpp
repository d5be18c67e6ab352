#include "tandem/core/program_end.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tandem/core/error.h"

namespace tandem {
namespace {

std::atomic<bool> g_ends{false};
std::atomic<int> g_making{0};
std::atomic<std::thread::id> g_ends_on{};

// Runs before the libraries that are used here free what they have, as they are unloaded.
void end_making() {
  if (g_ends.exchange(true, std::memory_order_seq_cst)) return;
  g_ends_on.store(std::this_thread::get_id());
  // A primitive takes milliseconds to make.
  while (g_making.load(std::memory_order_seq_cst) != 0)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

// Registered as this library is loaded, hence after the ones that it uses: a program may end before
// it has called any of them.
const bool g_registered = std::atexit(end_making) == 0;

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

MakingScope::MakingScope() {
  g_making.fetch_add(1, std::memory_order_seq_cst);
  allowed_ = !g_ends.load(std::memory_order_seq_cst);
}

MakingScope::~MakingScope() { g_making.fetch_sub(1, std::memory_order_seq_cst); }

bool program_ends_here() { return g_ends_on.load() == std::this_thread::get_id(); }

void stop_at_program_end() {
  if (!g_ends.load(std::memory_order_seq_cst)) return;
  while (!program_ends_here() && (is_main_thread() || is_detached()))
    std::this_thread::sleep_for(std::chrono::hours(1));
  throw CancelledError("The program ends: nothing can be made ready for the first time any more.");
}

}  // namespace tandem
