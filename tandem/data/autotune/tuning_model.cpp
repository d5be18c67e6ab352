#include "tandem/data/autotune/tuning_model.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace tandem::data {

double rate_of(const TunedPart& part, int threads) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  const double all = static_cast<double>(threads) * part.passes;
  const double together = part.work > 0 ? all / part.work : kNoLimit;
  const double alone = part.serial > 0 ? part.passes / part.serial : kNoLimit;
  return std::min(together, alone);
}

bool CoresTaken::leave_room_for(const TunedPart& part, int budget) const {
  CoresTaken more = *this;
  more.add(part, 1);
  return more.within(budget);
}

namespace {

// Parts that the whole does not depend on are made so much faster than those that it does depend
// on: work swings, and buffers between parts are small.
constexpr double kRoom = 1.25;

struct Sharing {
  const std::vector<TunedPart>& parts;
  const TuningLimits& limits;
  std::vector<int> threads;
  CoresTaken cores;
  double ram = 0;

  // Elements a second that its threads make, if nothing is behind a lock.
  double reach(std::size_t i) const {
    const double all = static_cast<double>(threads[i]) * parts[i].passes;
    return parts[i].work > 0 ? all / parts[i].work : std::numeric_limits<double>::infinity();
  }
  void give(std::size_t i) {
    ++threads[i];
    cores.add(parts[i], 1);
    ram += parts[i].passes * parts[i].buffer;
  }
  bool can_improve(std::size_t i) const {
    const TunedPart& part = parts[i];
    return part.tunable && threads[i] < part.most &&
           cores.leave_room_for(part, limits.cpu_budget) &&
           (part.buffer == 0 || ram + part.passes * part.buffer <= limits.ram_budget);
  }
};

// Threads come whole, work does not: of two parts on two cores with one thread each, the faster one
// leaves its core idle. Where all cores at work would give more, each part gets the threads for
// that, the last of which have work for a part of the time only.
void use_idle_cores(Sharing& sharing) {
  const std::vector<TunedPart>& parts = sharing.parts;
  double work = 0, bound = sharing.limits.wanted;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool computes = parts[i].tunable && parts[i].cpu >= 1;
    if (computes) work += parts[i].work;
    if (parts[i].serial > 0) bound = std::min(bound, parts[i].passes / parts[i].serial);
    if (!computes) bound = std::min(bound, sharing.reach(i));
  }
  if (work <= 0) return;
  const double reachable = std::min(bound, sharing.limits.cpu_budget / work);
  constexpr double kRounding = 1 - 1e-9;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TunedPart& part = parts[i];
    if (!part.tunable || part.cpu < 1) continue;
    while (sharing.threads[i] < part.most && sharing.reach(i) < kRounding * reachable &&
           (part.buffer == 0 ||
            sharing.ram + part.passes * part.buffer <= sharing.limits.ram_budget)) {
      sharing.give(i);
    }
  }
}

}  // namespace

// Only the slowest part counts for the whole, so that giving it one thread more, as long as that
// helps and there are any, cannot go wrong.
std::vector<int> choose_threads(const std::vector<TunedPart>& parts, const TuningLimits& limits) {
  Sharing sharing{parts, limits, std::vector<int>(parts.size(), 0)};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].tunable) {
      sharing.give(i);
    } else {
      sharing.threads[i] = parts[i].threads;
    }
  }
  for (;;) {
    double bound = std::numeric_limits<double>::infinity();
    std::size_t slowest = parts.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].serial > 0) bound = std::min(bound, parts[i].passes / parts[i].serial);
      if (!sharing.can_improve(i)) {
        bound = std::min(bound, sharing.reach(i));
      } else if (slowest == parts.size() || sharing.reach(i) < sharing.reach(slowest)) {
        slowest = i;
      }
    }
    if (slowest == parts.size()) break;
    if (sharing.reach(slowest) >= std::min(kRoom * bound, limits.wanted)) break;
    sharing.give(slowest);
  }
  if (limits.counts_cores) use_idle_cores(sharing);
  return sharing.threads;
}

}  // namespace tandem::data
