#include "tandem/data/internal/idle_time.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace tandem::data {
namespace {

constexpr double kEvery = 4e6;  // nanoseconds

struct Looks {
  int depth = 0;
  bool looking = false;
  std::int64_t apart = 0;
  // Of scopes so far, the later the more they count.
  double time = 0;
  double scopes = 0;
  std::uint64_t draws = 0;
};

Looks& looks() {
  thread_local Looks looks;
  return looks;
}

std::int64_t nanoseconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

// For how long the thread was ready to run and had no core; -1 if nobody knows.
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
bool draw(Looks& l) {
  std::uint64_t x = (++l.draws + (reinterpret_cast<std::uintptr_t>(&l) >> 4)) * 0x9E3779B97F4A7C15u;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  const double uniform = 0x1p-53 * static_cast<double>(x >> 11);
  return l.scopes == 0 || uniform * kEvery * l.scopes < l.time;
}

}  // namespace

IdleTime::IdleTime() {
  Looks& l = looks();
  if (l.depth++ == 0) l.looking = draw(l);
  if (!l.looking) return;
  outer_ = l.apart;
  l.apart = 0;
  begin_ = idle_so_far();
}

void IdleTime::end(std::int64_t time) {
  Looks& l = looks();
  l.scopes += 1;
  if (--l.depth == 0) {
    l.time += static_cast<double>(time);
    if (l.scopes > 1e5) {
      l.scopes /= 2;
      l.time /= 2;
    }
  }
  if (!l.looking) return;
  if (begin_ >= 0) {
    total_ = std::clamp<std::int64_t>(idle_so_far() - begin_, 0, time);
    own_ = std::max<std::int64_t>(total_ - l.apart, 0);
  }
  l.apart = outer_ + total_;
  if (l.depth == 0) l.looking = false;
}

void IdleTime::set_apart(std::int64_t time) {
  if (looks().looking) looks().apart += time;
}

}  // namespace tandem::data
