#include "tandem/distribute/internal/wire/request_ids.h"

#include <random>

namespace tandem::distribute {
namespace {

std::uint64_t random_bits() {
  thread_local std::mt19937_64 engine = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return engine();
}

}  // namespace

std::int64_t new_request_id() { return static_cast<std::int64_t>(random_bits() >> 1) | 1; }

std::int64_t new_step_id() { return static_cast<std::int64_t>(random_bits() >> 8) | 1; }

std::string new_handle() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string handle;
  for (std::uint64_t bits = random_bits(), i = 0; i < 16; ++i, bits >>= 4)
    handle += kDigits[bits & 15];
  return handle;
}

bool SeenRequests::is_new(std::int64_t id) {
  if (id == 0) return true;
  const MutexLock lock(mutex_);
  if (!seen_.insert(id).second) return false;
  order_.push_back(id);
  if (order_.size() > kMaxSeen) {
    seen_.erase(order_.front());
    order_.pop_front();
  }
  return true;
}

}  // namespace tandem::distribute
