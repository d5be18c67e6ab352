#include "tandem/data/autotune/idle_time.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace tandem::data {
namespace {

constexpr double kEvery = 4e6;  // nanoseconds
// What a thread may look at: by its time, some before that, and no more at once.
constexpr double kMinTime = 2e6;  // nanoseconds for each look
constexpr double kFirstLooks = 16;
constexpr double kMaxLooks = 256;
// Less is no waiting, but how exactly the clocks go together.
constexpr std::int64_t kMinIdle = 20'000;

struct Looks {
  int depth = 0;
  int from = 0;  // the depth of the outermost scope that is looked at; 0: none is
  int lost = 0;  // scopes that are open, but no longer looked at
  std::int64_t apart = 0;
  std::int64_t began = 0;  // the outermost scope
  // Averages over the scopes so far; later ones count more.
  double time = 0;
  double scopes = 0;
  std::uint64_t draws = 0;
  // What may still be looked at, as of a time.
  double left = kFirstLooks;
  std::int64_t as_of = 0;
  std::int64_t count = 0;
};

Looks& looks_of_thread() {
  thread_local Looks looks;
  return looks;
}

std::int64_t nanoseconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

// For how long the thread was ready to run and had no core; -1 if unknown.
std::int64_t without_core() {
  const int file = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[96];
  const ssize_t size = ::read(file, text, sizeof text);
  ::close(file);
  if (size <= 0) return -1;
  const char* end = text + size;
  const char* second = std::find<const char*>(text, end, ' ');
  std::int64_t value = -1;
  if (second != end) std::from_chars(second + 1, end, value);
  return value;
}

std::int64_t idle_so_far() {
  const std::int64_t without = without_core();
  if (without < 0) return -1;
  return std::max<std::int64_t>(
      nanoseconds_of(CLOCK_MONOTONIC) - nanoseconds_of(CLOCK_THREAD_CPUTIME_ID) - without, 0);
}

// The share of the scopes to look at goes by how long one takes on average, not by how long the
// last ones took: rare long waits would be missed.
bool draw(Looks& l, std::int64_t now) {
  std::uint64_t x = (++l.draws + (reinterpret_cast<std::uintptr_t>(&l) >> 4)) * 0x9E3779B97F4A7C15u;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  const double uniform = 0x1p-53 * static_cast<double>(x >> 11);
  const double time = l.time + static_cast<double>(now - l.began);
  return l.scopes == 0 || uniform * kEvery * l.scopes < time;
}

// Whether there is time for one more look.
bool may_look(Looks& l, std::int64_t now) {
  if (l.as_of == 0) l.as_of = now;
  l.left = std::min(kMaxLooks, l.left + static_cast<double>(now - l.as_of) / kMinTime);
  l.as_of = now;
  if (l.left < 1) return false;
  l.left -= 1;
  ++l.count;
  return true;
}

}  // namespace

IdleTime::IdleTime(std::int64_t now) {
  Looks& l = looks_of_thread();
  if (l.depth++ == 0) l.began = now;
  if (l.from == 0) {
    if (!draw(l, now) || !may_look(l, now)) return;
    l.from = l.depth;
  } else if (!may_look(l, now)) {
    l.lost = l.depth;
    l.from = 0;
    return;
  }
  outer_ = l.apart;
  l.apart = 0;
  begin_ = idle_so_far();
}

void IdleTime::end(std::int64_t time) {
  Looks& l = looks_of_thread();
  const int depth = l.depth--;
  l.scopes += 1;
  if (depth == 1) {
    l.time += static_cast<double>(time);
    if (l.scopes > 1e5) {
      l.scopes /= 2;
      l.time /= 2;
    }
  }
  if (depth <= l.lost) {
    begin_ = -1;
    l.lost = depth - 1;
  }
  if (l.from == 0) return;
  if (begin_ >= 0) {
    const std::int64_t idle = idle_so_far() - begin_;
    total_ = idle < kMinIdle ? 0 : std::min(idle, time);
    own_ = std::max<std::int64_t>(total_ - l.apart, 0);
  }
  l.apart = outer_ + total_;
  if (depth == l.from) l.from = 0;
}

void IdleTime::set_apart(std::int64_t time) {
  if (looks_of_thread().from != 0) looks_of_thread().apart += time;
}

std::int64_t IdleTime::looks() { return looks_of_thread().count; }

}  // namespace tandem::data
