#include "tandem/placement/internal/clusters.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tandem::placement {
namespace {

struct Edge {
  double bytes;
  int from, to;  // groups
};

// Where several tasks read a value, each reader's edge counts alone.
std::vector<Edge> edges_of(const Problem& problem) {
  std::vector<Edge> edges;
  for (int v = 0; v < static_cast<int>(problem.value_node.size()); ++v) {
    const auto value = static_cast<std::size_t>(v);
    if (problem.value_on_host[value]) continue;
    const int from = problem.group[static_cast<std::size_t>(problem.value_node[value])];
    for (const int reader : problem.readers(v)) {
      const int to = problem.group[static_cast<std::size_t>(reader)];
      if (from != to) edges.push_back({problem.value_bytes[value], from, to});
    }
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.bytes > b.bytes; });
  return edges;
}

}  // namespace

Clusters::Clusters(const Problem& problem, double most) : problem_(problem) {
  const auto groups = static_cast<std::size_t>(problem.num_groups());
  const auto classes = static_cast<std::size_t>(problem.classes);
  // Work is measured where it is done fastest.
  std::vector<double> least(groups, 0.0), work(groups * classes, 0.0);
  double total = 0;
  for (int node = 0; node < problem.size(); ++node) {
    const auto n = static_cast<std::size_t>(node);
    if (!problem.is_task[n]) continue;
    const auto g = static_cast<std::size_t>(problem.group[n]);
    double shortest = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < classes; ++c) {
      const double seconds = problem.seconds_by_class[n * classes + c];
      work[g * classes + c] += seconds;
      shortest = std::min(shortest, seconds);
    }
    least[g] += shortest;
    total += shortest;
  }

  std::vector<int> root(groups);
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int g) {
    while (root[static_cast<std::size_t>(g)] != g) {
      int& up = root[static_cast<std::size_t>(g)];
      g = up = root[static_cast<std::size_t>(up)];
    }
    return g;
  };
  for (const Edge& edge : edges_of(problem)) {
    const int a = find(edge.from), b = find(edge.to);
    if (a == b) continue;
    double& mine = least[static_cast<std::size_t>(a)];
    const double theirs = least[static_cast<std::size_t>(b)];
    if (mine + theirs > most * total) continue;
    mine += theirs;
    root[static_cast<std::size_t>(b)] = a;
  }

  cluster_.assign(groups, -1);
  for (std::size_t g = 0; g < groups; ++g) {
    const auto top = static_cast<std::size_t>(find(static_cast<int>(g)));
    if (cluster_[top] < 0) {
      cluster_[top] = size();
      members_.emplace_back();
      work_.resize(work_.size() + classes, 0.0);
    }
    cluster_[g] = cluster_[top];
    members_[static_cast<std::size_t>(cluster_[g])].push_back(static_cast<int>(g));
    for (std::size_t c = 0; c < classes; ++c) {
      work_[static_cast<std::size_t>(cluster_[g]) * classes + c] += work[g * classes + c];
    }
  }
}

Assignment Clusters::spread(const Assignment& otherwise) const {
  const auto classes = static_cast<std::size_t>(problem_.classes);
  std::vector<int> order(members_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return work_[static_cast<std::size_t>(a) * classes] >
           work_[static_cast<std::size_t>(b) * classes];
  });
  Assignment result = otherwise;
  std::vector<double> load(problem_.memory_of.size(), 0.0);
  for (const int cluster : order) {
    const std::vector<int>& members = this->members(cluster);
    // The groups that are bound go where they must; the others follow the least bound of them.
    const std::vector<int>* allowed = &problem_.allowed(members.front());
    for (const int g : members) {
      if (problem_.allowed(g).size() > allowed->size()) allowed = &problem_.allowed(g);
    }
    int best = allowed->front();
    double soonest = std::numeric_limits<double>::infinity();
    for (const int d : *allowed) {
      const double end = load[static_cast<std::size_t>(d)] +
                         work_[static_cast<std::size_t>(cluster) * classes +
                               static_cast<std::size_t>(problem_.costs.class_of(d))];
      if (end < soonest) {
        soonest = end;
        best = d;
      }
    }
    load[static_cast<std::size_t>(best)] = soonest;
    for (const int g : members) {
      const std::vector<int>& may = problem_.allowed(g);
      if (std::find(may.begin(), may.end(), best) != may.end()) {
        result[static_cast<std::size_t>(g)] = best;
      }
    }
  }
  return result;
}

}  // namespace tandem::placement
