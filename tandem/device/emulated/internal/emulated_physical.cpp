#include "tandem/device/emulated/internal/emulated_physical.h"

#include <algorithm>
#include <utility>

#include "tandem/device/emulated/internal/emulated_core.h"

namespace tandem {

std::chrono::steady_clock::duration emulated_duration(double seconds) {
  const double kept = std::clamp(seconds, 0.0, 8e6);
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(kept));
}

EmulatedPhysical::EmulatedPhysical(EmulatedSpec spec, PhysicalDevice id, std::uint64_t backend)
    : spec_(std::move(spec)), id_(std::move(id)), backend_(backend), slow_(1) {
  inject(spec_.fault);
}

std::size_t EmulatedPhysical::take_memory(std::size_t least, std::size_t wanted) {
  constexpr std::size_t kUnit = 256;
  std::lock_guard lock(mutex_);
  const std::size_t left = (spec_.memory - taken_) / kUnit * kUnit;
  if (least > left) return 0;
  const std::size_t given = std::min(wanted, left);
  taken_ += given;
  return given;
}

void EmulatedPhysical::return_memory(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  taken_ -= bytes;
}

std::size_t EmulatedPhysical::memory_left() const {
  std::lock_guard lock(mutex_);
  return spec_.memory - taken_;
}

void EmulatedPhysical::inject(const EmulatedFaults& faults) {
  enqueues_.in(faults.lost_at);
  allocations_.in(faults.oom_at);
  copies_.in(faults.stall_at);
  slow_ = std::max(faults.slow, 1.0);
}

double EmulatedPhysical::link_seconds(double bytes) const {
  return (spec_.latency + bytes / spec_.link) * slow_.load();
}

EmulatedTime EmulatedPhysical::reserve_in(EmulatedPhysical& to, EmulatedTime ready,
                                          double seconds) {
  std::lock_guard lock(to.link_mutex_);
  const EmulatedTime begin = std::max(ready, to.in_free_);
  to.in_free_ = begin + emulated_duration(seconds);
  return begin;
}

EmulatedTime EmulatedPhysical::reserve_out(EmulatedPhysical& from, EmulatedTime ready,
                                           double seconds) {
  std::lock_guard lock(from.link_mutex_);
  const EmulatedTime begin = std::max(ready, from.out_free_);
  from.out_free_ = begin + emulated_duration(seconds);
  return begin;
}

EmulatedTime EmulatedPhysical::reserve_between(EmulatedPhysical& from, EmulatedPhysical& to,
                                               EmulatedTime ready, double seconds) {
  std::scoped_lock lock(from.link_mutex_, to.link_mutex_);
  const EmulatedTime begin = std::max({ready, from.out_free_, to.in_free_});
  from.out_free_ = to.in_free_ = begin + emulated_duration(seconds);
  return begin;
}

void EmulatedPhysical::join(const std::shared_ptr<EmulatedCore>& core) {
  std::lock_guard lock(mutex_);
  std::erase_if(cores_, [](const auto& known) { return known.expired(); });
  cores_.push_back(core);
}

std::vector<std::shared_ptr<EmulatedCore>> EmulatedPhysical::cores() const {
  std::vector<std::shared_ptr<EmulatedCore>> cores;
  std::lock_guard lock(mutex_);
  for (const auto& core : cores_) {
    if (auto there = core.lock()) cores.push_back(std::move(there));
  }
  return cores;
}

void EmulatedPhysical::lose(const std::string& why) {
  for (const auto& core : cores()) core->lose(why);
}

bool EmulatedPhysical::ask_for_memory(const EmulatedMemory* asks) {
  std::size_t given = 0;
  for (const auto& core : cores()) {
    if (!core->has(asks)) given += core->release_unused();
  }
  return given != 0;
}

}  // namespace tandem
