#include "tandem/placement/internal/list_placement.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tandem/placement/task_graph.h"

namespace tandem::placement {
namespace {

constexpr std::size_t kMaxGaps = 8;
constexpr std::size_t kManyDevices = 16;
constexpr double kLight = 0.05;  // of the mean time of a node

}  // namespace

ListPlacement::ListPlacement(const Problem& problem, const Assignment& otherwise)
    : problem_(problem), otherwise_(otherwise) {
  const std::size_t n = problem.nodes.size();
  std::vector<double> least(n, 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!problem.is_task[i]) continue;
    const auto first =
        problem.seconds_by_class.begin() + static_cast<std::ptrdiff_t>(i) * problem.classes;
    least[i] = *std::min_element(first, first + problem.classes);
    sum += least[i];
  }
  const double mean = n > 0 ? sum / static_cast<double>(n) : 0;
  for (std::size_t i = 0; i < n; ++i) light_.push_back(least[i] <= kLight * mean);

  // A mean copy: over the pairs of the first devices, those of one memory included.
  const DeviceSet& devices = problem.costs.devices();
  const int some = std::min(devices.size(), 8);
  constexpr double kLarge = 1e6;
  for (int a = 0; a < some; ++a) {
    for (int b = 0; b < some; ++b) {
      const int from = problem.memory(a);
      const int to = problem.memory(b);
      const double latency = devices.copy_seconds(from, to, 0);
      copy_latency_ += latency / (some * some);
      copy_rate_ += (devices.copy_seconds(from, to, kLarge) - latency) / kLarge / (some * some);
    }
  }
}

// The longest way to the end, with mean times.
void ListPlacement::rank(double copy_weight) {
  const std::size_t n = problem_.nodes.size();
  // A class counts as often as there are devices of it.
  std::vector<double> share(static_cast<std::size_t>(problem_.classes), 0.0);
  const int devices = problem_.costs.devices().size();
  for (int d = 0; d < devices; ++d) {
    share[static_cast<std::size_t>(problem_.costs.class_of(d))] += 1.0 / devices;
  }
  rank_.assign(n, 0.0);
  for (int node = problem_.size() - 1; node >= 0; --node) {
    const auto i = static_cast<std::size_t>(node);
    double after = rank_[i];  // reported by those that wait for it
    for (int v = problem_.first_value(node); v < problem_.end_value(node); ++v) {
      const double copy =
          copy_weight * mean_copy(problem_.value_bytes[static_cast<std::size_t>(v)]);
      for (const int reader : problem_.readers(v)) {
        after = std::max(after, copy + rank_[static_cast<std::size_t>(reader)]);
      }
    }
    if (problem_.is_task[i]) {
      for (int c = 0; c < problem_.classes; ++c) {
        const auto k = i * static_cast<std::size_t>(problem_.classes) + static_cast<std::size_t>(c);
        // It is never placed where it takes very long.
        after += share[static_cast<std::size_t>(c)] * problem_.seconds_by_class[k];
      }
    }
    rank_[i] = after;
    for (const int before : problem_.controls(node)) {
      double& r = rank_[static_cast<std::size_t>(before)];
      r = std::max(r, after);
    }
  }
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&](int a, int b) {
    const double x = rank_[static_cast<std::size_t>(a)];
    const double y = rank_[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
}

// With many devices: those where the inputs are, and the one of each class that is free first.
const std::vector<int>& ListPlacement::candidates(int node) {
  const std::vector<int>& all = problem_.allowed(problem_.group[static_cast<std::size_t>(node)]);
  if (all.size() <= kManyDevices) return all;
  few_.clear();
  std::vector<int> first(static_cast<std::size_t>(problem_.classes), -1);
  const auto free = [&](int d) { return streams_[static_cast<std::size_t>(d)].front().free; };
  for (const int d : all) {
    int& best = first[static_cast<std::size_t>(problem_.costs.class_of(d))];
    if (best < 0 || free(d) < free(best)) best = d;
  }
  for (const Problem::Use& use : problem_.uses(node)) {
    const int d = device_of(problem_.value_node[static_cast<std::size_t>(use.value)]);
    if (d < 0 || few_.size() >= kManyDevices ||
        std::find(few_.begin(), few_.end(), d) != few_.end())
      continue;
    if (std::find(all.begin(), all.end(), d) != all.end()) few_.push_back(d);
  }
  for (const int d : first) {
    if (d >= 0 && std::find(few_.begin(), few_.end(), d) == few_.end()) few_.push_back(d);
  }
  return few_;
}

// When a value is in a memory, `copies` being the seconds of copies that it takes.
double ListPlacement::arrival(int value, int to, double& copies, bool keep) {
  const auto v = static_cast<std::size_t>(value);
  const int producer = problem_.value_node[v];
  if (device_of(producer) < 0) return 0;  // goes where we go
  const int from = problem_.memory_of_value(value, assignment_);
  if (from == to) return made_[v];
  for (int i = copies_of_value_[v]; i >= 0; i = arrived_[static_cast<std::size_t>(i)].next) {
    const Arrived& a = arrived_[static_cast<std::size_t>(i)];
    if (a.memory == to) return a.time;
  }
  double arrived = made_[v];
  if (!problem_.value_everywhere[v]) {
    const DeviceSet& devices = problem_.costs.devices();
    const int before = devices.hop_before(to, from);
    const double there = arrival(value, before, copies, keep);
    const double seconds = devices.copy_seconds(before, to, problem_.value_bytes[v]);
    const int lane = TaskGraph::copy_lane(devices, before, to);
    double& free = lane_trial_[static_cast<std::size_t>(lane)];
    lanes_touched_.push_back(lane);
    arrived = free = std::max(free, there) + seconds;
    copies += seconds;
  }
  if (keep) {
    arrived_.push_back({to, arrived, copies_of_value_[v]});
    copies_of_value_[v] = static_cast<int>(arrived_.size()) - 1;
    used_[static_cast<std::size_t>(to)] += problem_.value_bytes[v];
  }
  return arrived;
}

// Sets how many nodes wait in a row with this one, which is bounded.
bool ListPlacement::can_wait(int node) {
  constexpr char kMaxInARow = 16;
  const auto n = static_cast<std::size_t>(node);
  if (!light(node)) return false;
  char row = 1;
  for (const Problem::Use& use : problem_.uses(node)) {
    const int producer = problem_.value_node[static_cast<std::size_t>(use.value)];
    if (device_of(producer) >= 0) return false;
    row = std::max(row, static_cast<char>(waits_[static_cast<std::size_t>(producer)] + 1));
  }
  bool read = false;
  for (int v = problem_.first_value(node); v < problem_.end_value(node); ++v) {
    read = read || !problem_.readers(v).empty();
  }
  if (!read || row > kMaxInARow) return false;
  waits_[n] = row;
  return true;
}

ListPlacement::Trial ListPlacement::attempt(int node, int device) {
  const auto n = static_cast<std::size_t>(node);
  const int memory = problem_.memory(device);
  Trial trial;
  double ready = 0;
  for (const Problem::Use& use : problem_.uses(node)) {
    ready = std::max(ready,
                     arrival(use.value, problem_.memory_of_use(use, device), trial.copies, false));
  }
  for (const int lane : lanes_touched_) {
    lane_trial_[static_cast<std::size_t>(lane)] = lane_free_[static_cast<std::size_t>(lane)];
  }
  lanes_touched_.clear();
  for (const int before : problem_.controls(node)) {
    for (int v = problem_.first_value(before); v < problem_.end_value(before); ++v) {
      ready = std::max(ready, made_[static_cast<std::size_t>(v)]);
    }
  }
  if (!problem_.is_task[n]) {
    trial.begin = trial.finish = ready;
    return trial;
  }
  const double seconds = problem_.seconds(node, device);
  trial.begin = std::numeric_limits<double>::infinity();
  const auto& streams = streams_[static_cast<std::size_t>(device)];
  for (std::size_t s = 0; s < streams.size(); ++s) {
    double begin = std::max(ready, streams[s].free);
    for (const Gap& gap : streams[s].gaps) {
      const double from = std::max(ready, gap.begin);
      if (from + seconds <= gap.end) begin = std::min(begin, from);
    }
    if (begin < trial.begin) {
      trial.begin = begin;
      trial.stream = static_cast<int>(s);
    }
  }
  trial.finish = trial.begin + seconds;
  if (problem_.limited) {
    const auto room = static_cast<double>(
        problem_.costs.devices().devices[static_cast<std::size_t>(memory)].memory_bytes);
    double bytes = used_[static_cast<std::size_t>(memory)];
    for (int v = problem_.first_value(node); v < problem_.end_value(node); ++v) {
      bytes += problem_.value_bytes[static_cast<std::size_t>(v)];
    }
    // What comes along, or is copied.
    for (const Problem::Use& use : problem_.uses(node)) {
      const auto v = static_cast<std::size_t>(use.value);
      const int producer = problem_.value_node[v];
      const int group = problem_.group[static_cast<std::size_t>(producer)];
      if (device_of(producer) < 0) {
        for (const int m : problem_.members(group)) {
          bytes += problem_.variable_bytes[static_cast<std::size_t>(m)];
        }
      } else if (!use.on_host && problem_.memory_of_value(use.value, assignment_) != memory) {
        bytes += problem_.value_bytes[v];
      }
    }
    if (assignment_[static_cast<std::size_t>(problem_.group[n])] < 0) {
      for (const int m : problem_.members(problem_.group[n])) {
        bytes += problem_.variable_bytes[static_cast<std::size_t>(m)];
      }
    }
    trial.fits = room == 0 || bytes <= room;
  }
  return trial;
}

void ListPlacement::fill(Stream& stream, double begin, double end) {
  for (Gap& gap : stream.gaps) {
    if (begin < gap.begin || end > gap.end) continue;
    // The longer rest stays a gap.
    if (begin - gap.begin > gap.end - end) {
      gap.end = begin;
    } else {
      gap.begin = end;
    }
    return;
  }
  if (begin > stream.free) {
    if (stream.gaps.size() == kMaxGaps) stream.gaps.erase(stream.gaps.begin());
    stream.gaps.push_back({stream.free, begin});
  }
  stream.free = std::max(stream.free, end);
}

void ListPlacement::assign(int group, int device) {
  const std::vector<int>& allowed = problem_.allowed(group);
  if (std::find(allowed.begin(), allowed.end(), device) == allowed.end()) {
    device = otherwise_[static_cast<std::size_t>(group)];
  }
  assignment_[static_cast<std::size_t>(group)] = device;
  for (const int m : problem_.members(group)) {
    used_[static_cast<std::size_t>(problem_.memory(device))] +=
        problem_.variable_bytes[static_cast<std::size_t>(m)];
  }
}

void ListPlacement::commit(int node, int device) {
  const auto n = static_cast<std::size_t>(node);
  // What waited for us goes where we go.
  for (const Problem::Use& use : problem_.uses(node)) {
    const int producer = problem_.value_node[static_cast<std::size_t>(use.value)];
    if (device_of(producer) < 0) commit(producer, device);
  }
  if (device_of(node) < 0) assign(problem_.group[n], device);
  device = device_of(node);
  const Trial trial = attempt(node, device);
  double copies = 0;
  for (const Problem::Use& use : problem_.uses(node)) {
    arrival(use.value, problem_.memory_of_use(use, device), copies, true);
  }
  for (const int lane : lanes_touched_) {
    lane_free_[static_cast<std::size_t>(lane)] = lane_trial_[static_cast<std::size_t>(lane)];
  }
  lanes_touched_.clear();
  if (problem_.is_task[n]) {
    fill(streams_[static_cast<std::size_t>(device)][static_cast<std::size_t>(trial.stream)],
         trial.begin, trial.finish);
  }
  for (int v = problem_.first_value(node); v < problem_.end_value(node); ++v) {
    made_[static_cast<std::size_t>(v)] = trial.finish;
  }
  if (!problem_.limited) return;
  for (int v = problem_.first_value(node); v < problem_.end_value(node); ++v) {
    used_[static_cast<std::size_t>(problem_.memory_of_value(v, assignment_))] +=
        problem_.value_bytes[static_cast<std::size_t>(v)];
  }
  for (const Problem::Use& use : problem_.uses(node)) {
    const auto v = static_cast<std::size_t>(use.value);
    if (--unread_[v] != 0) continue;
    used_[static_cast<std::size_t>(problem_.memory_of_value(use.value, assignment_))] -=
        problem_.value_bytes[v];
    for (int i = copies_of_value_[v]; i >= 0; i = arrived_[static_cast<std::size_t>(i)].next) {
      used_[static_cast<std::size_t>(arrived_[static_cast<std::size_t>(i)].memory)] -=
          problem_.value_bytes[v];
    }
  }
}

Assignment ListPlacement::place(const ListRule& rule) {
  const DeviceSet& devices = problem_.costs.devices();
  rank(rule.copy_rank);
  assignment_.assign(static_cast<std::size_t>(problem_.num_groups()), -1);
  streams_.assign(devices.devices.size(), {});
  for (int d = 0; d < devices.size(); ++d) {
    streams_[static_cast<std::size_t>(d)].resize(static_cast<std::size_t>(
        std::clamp(devices.devices[static_cast<std::size_t>(d)].streams, 1, 64)));
  }
  lane_free_.assign(3 * devices.devices.size(), 0.0);
  lane_trial_ = lane_free_;
  lanes_touched_.clear();
  made_.assign(problem_.value_node.size(), 0.0);
  copies_of_value_.assign(problem_.value_node.size(), -1);
  arrived_.clear();
  used_.assign(devices.devices.size(), 0.0);
  if (problem_.limited) {
    unread_.assign(problem_.value_node.size(), 0);
    for (int node = 0; node < problem_.size(); ++node) {
      for (const Problem::Use& use : problem_.uses(node)) {
        ++unread_[static_cast<std::size_t>(use.value)];
      }
    }
  }
  for (int g = 0; g < problem_.num_groups(); ++g) {
    if (problem_.allowed(g).size() == 1) assign(g, problem_.allowed(g).front());
  }
  waits_.assign(problem_.nodes.size(), 0);
  for (const int node : order_) {
    int best = device_of(node);
    if (best < 0) {
      if (can_wait(node)) continue;
      double least = std::numeric_limits<double>::infinity();
      bool fits = false;
      for (const int d : candidates(node)) {
        const Trial trial = attempt(node, d);
        const double cost = trial.finish + rule.copy_penalty * trial.copies;
        if (best >= 0 && (fits != trial.fits ? fits : cost >= least)) continue;
        best = d;
        least = cost;
        fits = trial.fits;
      }
    }
    commit(node, best);
  }
  for (int g = 0; g < problem_.num_groups(); ++g) {
    int& device = assignment_[static_cast<std::size_t>(g)];
    if (device < 0) device = otherwise_[static_cast<std::size_t>(g)];
  }
  return assignment_;
}

}  // namespace tandem::placement
