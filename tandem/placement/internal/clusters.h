#pragma once

#include <vector>

#include "tandem/placement/internal/problem.h"

namespace tandem::placement {

/// Groups joined along the edges whose copies would take longest, as long as a cluster's work stays
/// below a share of all work: what should not be cut apart.
class Clusters {
 public:
  /// `most`: the largest cluster's share of all work.
  Clusters(const Problem& problem, double most);

  int size() const { return static_cast<int>(members_.size()); }
  int of(int group) const { return cluster_[static_cast<std::size_t>(group)]; }
  const std::vector<int>& members(int cluster) const {
    return members_[static_cast<std::size_t>(cluster)];
  }
  /// Each cluster whole, the largest first, where least work lies so far. What a group of it may
  /// not do stays as it is `otherwise`.
  Assignment spread(const Assignment& otherwise) const;

 private:
  const Problem& problem_;
  std::vector<int> cluster_;  // by group
  std::vector<std::vector<int>> members_;
  std::vector<double> work_;  // by cluster and class
};

}  // namespace tandem::placement
