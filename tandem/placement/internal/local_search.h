#pragma once

#include <cstdint>
#include <vector>

#include "tandem/placement/internal/clusters.h"
#include "tandem/placement/internal/evaluator.h"
#include "tandem/placement/internal/list_placement.h"
#include "tandem/placement/internal/problem.h"

namespace tandem::placement {

/// Improves an assignment by moving what lies on the critical path: single groups, runs of nodes, a
/// node with its neighbours, clusters. Moves that make things a little worse are allowed at first.
/// Deterministic: its random numbers come from a fixed seed.
class LocalSearch {
 public:
  LocalSearch(const Problem& problem, Evaluator& evaluator, const ListPlacement& lists,
              const std::vector<Clusters>& clusters)
      : problem_(problem), evaluator_(evaluator), lists_(lists), clusters_(clusters) {}

  /// Goes on until the evaluator has run `budget` further tasks or the makespan is `enough`. `best`
  /// is replaced by what is better.
  void improve(Assignment& best, Score& score, double budget, double enough);

 private:
  struct Step {
    int node;     ///< or -1 - value, of a copy
    bool waited;  ///< for its lane, not for an input
  };
  void find_path(const Assignment& assignment);
  bool propose(Assignment& moved);
  void move(int node, int device, Assignment& moved);
  void move_group(int group, int device, Assignment& moved);
  void shake(Assignment& assignment);
  int other_device(int group, int device);
  std::uint32_t random(std::uint32_t below);

  const Problem& problem_;
  Evaluator& evaluator_;
  const ListPlacement& lists_;
  const std::vector<Clusters>& clusters_;
  std::vector<Step> path_;
  std::vector<int> changed_;  // groups of the current proposal
  std::uint64_t state_ = 0x9e3779b97f4a7c15u;
};

}  // namespace tandem::placement
