#include "tandem/placement/internal/local_search.h"

#include <algorithm>

namespace tandem::placement {
namespace {

constexpr double kAllowedAtFirst = 0.04;  // how much worse a step may be

}  // namespace

std::uint32_t LocalSearch::random(std::uint32_t below) {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return static_cast<std::uint32_t>((state_ >> 32) % below);
}

// From the end back: what delayed a task is on the path before it.
void LocalSearch::find_path(const Assignment& assignment) {
  path_.clear();
  const auto& begin = evaluator_.run().begin();
  const auto& end = evaluator_.run().end();
  const auto last = std::max_element(end.begin(), end.end());
  if (last == end.end()) return;
  int task = static_cast<int>(last - end.begin());
  while (task >= 0) {
    const auto t = static_cast<std::size_t>(task);
    const int input = evaluator_.last_input(task, assignment);
    const int behind = evaluator_.run().behind()[t];
    const bool by_input = input >= 0 && end[static_cast<std::size_t>(input)] >= begin[t];
    path_.push_back({evaluator_.what()[t], !by_input});
    if (begin[t] <= 0) break;
    task = by_input ? input : behind;
  }
}

int LocalSearch::other_device(int group, int device) {
  const std::vector<int>& allowed = problem_.allowed(group);
  if (allowed.size() < 2) return -1;
  const auto n = static_cast<std::uint32_t>(allowed.size());
  const int other = allowed[random(n)];
  if (other != device) return other;
  const int again = allowed[random(n)];
  return again == device ? -1 : again;
}

void LocalSearch::move_group(int group, int device, Assignment& moved) {
  int& now = moved[static_cast<std::size_t>(group)];
  if (now == device) return;
  const std::vector<int>& allowed = problem_.allowed(group);
  if (std::find(allowed.begin(), allowed.end(), device) == allowed.end()) return;
  now = device;
  changed_.push_back(group);
}

// A node, and the light ones that serve it alone.
void LocalSearch::move(int node, int device, Assignment& moved) {
  const int group = problem_.group[static_cast<std::size_t>(node)];
  const std::size_t before = changed_.size();
  move_group(group, device, moved);
  if (changed_.size() == before) return;
  for (const int member : problem_.members(group)) {
    for (const Problem::Use& use : problem_.uses(member)) {
      const int producer = problem_.value_node[static_cast<std::size_t>(use.value)];
      if (!lists_.light(producer) || problem_.readers(use.value).size() != 1) continue;
      const int theirs = problem_.group[static_cast<std::size_t>(producer)];
      if (theirs != group) move_group(theirs, device, moved);
    }
  }
}

bool LocalSearch::propose(Assignment& moved) {
  changed_.clear();
  if (path_.empty()) return false;
  const auto at = random(static_cast<std::uint32_t>(path_.size()));
  const Step step = path_[at];
  if (random(4) == 0) {
    // Something anywhere, which makes room, and perhaps something of the path for it.
    const int any = static_cast<int>(random(static_cast<std::uint32_t>(problem_.size())));
    const int there =
        moved[static_cast<std::size_t>(problem_.group[static_cast<std::size_t>(any)])];
    const int to = other_device(problem_.group[static_cast<std::size_t>(any)], there);
    if (to >= 0) move(any, to, moved);
    if (step.node >= 0 && step.node != any && random(2) == 0) move(step.node, there, moved);
    return !changed_.empty();
  }
  if (step.node < 0) {
    // A copy: put its ends on one device.
    const int value = -1 - step.node;
    const int producer = problem_.value_node[static_cast<std::size_t>(value)];
    const auto readers = problem_.readers(value);
    const int reader = at > 0 && path_[at - 1].node >= 0
                           ? path_[at - 1].node
                           : readers[random(static_cast<std::uint32_t>(readers.size()))];
    const int here =
        moved[static_cast<std::size_t>(problem_.group[static_cast<std::size_t>(producer)])];
    const int there =
        moved[static_cast<std::size_t>(problem_.group[static_cast<std::size_t>(reader)])];
    switch (random(4)) {
      case 0: move(producer, there, moved); break;
      case 1: {
        // With what the producer reads.
        move(producer, there, moved);
        for (const Problem::Use& use : problem_.uses(producer)) {
          move(problem_.value_node[static_cast<std::size_t>(use.value)], there, moved);
        }
        break;
      }
      case 2: move(reader, here, moved); break;
      default:
        for (const int each : readers) move(each, here, moved);
        break;
    }
    return !changed_.empty();
  }
  const int group = problem_.group[static_cast<std::size_t>(step.node)];
  const int device = moved[static_cast<std::size_t>(group)];
  const int to = other_device(group, device);
  if (to < 0) return false;
  switch (random(5)) {
    case 0:
    case 1: move(step.node, to, moved); break;
    case 4: {
      const Clusters& level = clusters_[random(static_cast<std::uint32_t>(clusters_.size()))];
      for (const int each : level.members(level.of(group))) {
        if (moved[static_cast<std::size_t>(each)] == device) move_group(each, to, moved);
      }
      break;
    }
    case 2: {
      // A run of nodes of one device along the path.
      const std::uint32_t length = 2 + random(8);
      for (std::uint32_t i = 0; i < length && at + i < path_.size(); ++i) {
        const Step& next = path_[at + i];
        if (next.node < 0) continue;
        const int g = problem_.group[static_cast<std::size_t>(next.node)];
        if (moved[static_cast<std::size_t>(g)] == device) move(next.node, to, moved);
      }
      break;
    }
    default:
      // With its neighbours.
      move(step.node, to, moved);
      for (const Problem::Use& use : problem_.uses(step.node)) {
        const int producer = problem_.value_node[static_cast<std::size_t>(use.value)];
        if (random(2) == 0) move(producer, to, moved);
      }
      for (int v = problem_.first_value(step.node); v < problem_.end_value(step.node); ++v) {
        for (const int reader : problem_.readers(v)) {
          if (random(2) == 0) move(reader, to, moved);
        }
      }
      break;
  }
  return !changed_.empty();
}

// A third of everything goes anywhere.
void LocalSearch::shake(Assignment& assignment) {
  for (int group = 0; group < problem_.num_groups(); ++group) {
    const std::vector<int>& allowed = problem_.allowed(group);
    if (random(3) != 0) continue;
    assignment[static_cast<std::size_t>(group)] =
        allowed[random(static_cast<std::uint32_t>(allowed.size()))];
  }
}

void LocalSearch::improve(Assignment& best, Score& score, double budget, double enough) {
  const double begin = evaluator_.spent();
  Assignment now = best;
  Score now_score = evaluator_.score(now);
  find_path(now);
  Assignment moved = now;
  // Proposals that change nothing are free of evaluations, so they are bounded apart.
  int idle = 0;
  int in_vain = 0;
  const int patience = 50 + 10 * problem_.num_groups();
  while (evaluator_.spent() - begin < budget && idle < 200 &&
         (score.makespan > enough || score.excess > 0)) {
    if (!propose(moved)) {
      ++idle;
      continue;
    }
    idle = 0;
    if (++in_vain > patience) {
      // Elsewhere lies another hill.
      in_vain = 0;
      now = best;
      shake(now);
      moved = now;
      now_score = evaluator_.score(now);
      find_path(now);
      continue;
    }
    const double left = 1 - (evaluator_.spent() - begin) / budget;
    Score limit = now_score;
    limit.makespan *= 1 + kAllowedAtFirst * left * left;
    const Score found = evaluator_.score(moved, limit);
    if (found < limit) {
      for (const int group : changed_) {
        now[static_cast<std::size_t>(group)] = moved[static_cast<std::size_t>(group)];
      }
      now_score = found;
      find_path(now);
      if (found < score) {
        score = found;
        best = now;
        in_vain = 0;
      }
    } else {
      for (const int group : changed_) {
        moved[static_cast<std::size_t>(group)] = now[static_cast<std::size_t>(group)];
      }
    }
  }
}

}  // namespace tandem::placement
