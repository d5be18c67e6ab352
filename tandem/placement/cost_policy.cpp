#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "tandem/placement/constraints.h"
#include "tandem/placement/internal/clusters.h"
#include "tandem/placement/internal/evaluator.h"
#include "tandem/placement/internal/kernel_support.h"
#include "tandem/placement/internal/list_placement.h"
#include "tandem/placement/internal/local_search.h"
#include "tandem/placement/internal/problem.h"

namespace tandem {
namespace {

using placement::Assignment;
using placement::Evaluator;
using placement::ListPlacement;
using placement::ListRule;
using placement::Problem;
using placement::Score;

// Tasks that may be run on the virtual clock in search of something better: some 40 ms. Large
// graphs are placed by the first candidates alone.
constexpr double kEffort = 400'000;
constexpr int kLargeGraph = 5'000;
constexpr double kGoodEnough = 1.001;  // times what no placement can beat

constexpr ListRule kRules[] = {{1, 0}, {0, 0}, {1, 0.5}, {3, 1}, {1, 2}};

// The largest clusters' shares of all work.
constexpr double kClusterShares[] = {0.55, 0.3, 0.15, 0.06, 0.02};

class Search {
 public:
  Search(const Problem& problem, Assignment greedy)
      : problem_(problem), evaluator_(problem), greedy_(std::move(greedy)), best_(greedy_) {
    score_ = evaluator_.score(best_);
  }

  void run() {
    const bool large = problem_.size() > kLargeGraph;
    ListPlacement lists(problem_, greedy_);
    bound_ = work_bound();
    for (const ListRule& rule : kRules) {
      consider(lists.place(rule));
      if (large && score_.excess == 0) break;
    }
    for (const int device : devices_to_try(large)) {
      if (alone(device) < score_.makespan || score_.excess > 0) consider(all_on(device));
    }
    if (large) return;
    std::vector<placement::Clusters> clusters;
    clusters.reserve(std::size(kClusterShares));
    for (const double share : kClusterShares) {
      clusters.emplace_back(problem_, share);
      consider(clusters.back().spread(greedy_));
    }
    placement::LocalSearch search(problem_, evaluator_, lists, clusters);
    search.improve(best_, score_, kEffort, kGoodEnough * bound_);
  }

  const Assignment& best() const { return best_; }
  Score score() const { return score_; }

 private:
  // What one device needs for everything that may run on it.
  double alone(int device) const {
    double sum = 0;
    for (int node = 0; node < problem_.size(); ++node) {
      const std::vector<int>& allowed =
          problem_.allowed(problem_.group[static_cast<std::size_t>(node)]);
      if (std::find(allowed.begin(), allowed.end(), device) == allowed.end()) continue;
      if (problem_.is_task[static_cast<std::size_t>(node)]) sum += problem_.seconds(node, device);
    }
    return sum / streams(device);
  }

  // All devices together, each weighted by its speed, can't be faster.
  double work_bound() const {
    const int n = problem_.costs.devices().size();
    double sum = 0;
    std::vector<double> total(static_cast<std::size_t>(problem_.classes), 0.0);
    const auto classes = static_cast<std::size_t>(problem_.classes);
    for (std::size_t i = 0; i < problem_.nodes.size(); ++i) {
      if (!problem_.is_task[i]) continue;
      for (std::size_t c = 0; c < classes; ++c)
        total[c] += problem_.seconds_by_class[i * classes + c];
    }
    for (int d = 0; d < n; ++d) {
      const auto c = static_cast<std::size_t>(problem_.costs.class_of(d));
      if (total[c] > 0) sum += streams(d) / total[c];
    }
    double bound = 0;
    for (std::size_t i = 0; i < problem_.nodes.size(); ++i) {
      if (!problem_.is_task[i]) continue;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t c = 0; c < classes; ++c) {
        if (total[c] <= 0) return 0;
        least = std::min(least, problem_.seconds_by_class[i * classes + c] / total[c]);
      }
      bound += least;
    }
    return sum > 0 ? bound / sum : 0;
  }

  int streams(int device) const {
    return std::max(1, problem_.costs.devices().devices[static_cast<std::size_t>(device)].streams);
  }

  void consider(Assignment candidate) {
    if (candidate == best_) return;
    const Score score = evaluator_.score(candidate, score_);
    if (!(score < score_)) return;
    score_ = score;
    best_ = std::move(candidate);
  }

  Assignment all_on(int device) const {
    Assignment all = greedy_;
    for (int g = 0; g < problem_.num_groups(); ++g) {
      const std::vector<int>& allowed = problem_.allowed(g);
      if (std::find(allowed.begin(), allowed.end(), device) != allowed.end()) {
        all[static_cast<std::size_t>(g)] = device;
      }
    }
    return all;
  }

  // All, or of many (or for a large graph) one of each class.
  std::vector<int> devices_to_try(bool large) const {
    std::vector<int> devices;
    const int n = problem_.costs.devices().size();
    if (!large && n <= 8) {
      for (int d = 0; d < n; ++d) devices.push_back(d);
    } else {
      for (int c = 0; c < problem_.classes; ++c)
        devices.push_back(problem_.costs.representative(c));
    }
    return devices;
  }

  const Problem& problem_;
  Evaluator evaluator_;
  Assignment greedy_, best_;
  Score score_;
  double bound_ = 0;
};

void append_time(std::string& text, double seconds) {
  char buffer[32];
  const char* unit = seconds < 1e-3 ? " us" : seconds < 1 ? " ms" : " s";
  const double value = seconds < 1e-3 ? seconds * 1e6 : seconds < 1 ? seconds * 1e3 : seconds;
  const auto end =
      std::to_chars(std::begin(buffer), std::end(buffer), value, std::chars_format::general, 3);
  text.append(buffer, end.ptr);
  text += unit;
}

// "12.5 us here, 96 us on CPU:0"
class Reasons {
 public:
  explicit Reasons(const Problem& problem) : problem_(problem) {
    for (int c = 0; c < problem.classes; ++c) {
      const int device = problem.costs.representative(c);
      names_.push_back(placement::short_name(problem.costs.devices(), device));
    }
  }
  std::string of(int node, int device) const {
    if (!problem_.is_task[static_cast<std::size_t>(node)]) return "beside those that use it";
    std::string text;
    append_time(text, problem_.seconds(node, device));
    text += " here";
    int others = 0;
    for (int c = 0; c < problem_.classes; ++c) {
      if (c == problem_.costs.class_of(device) || !reachable(node, c) || ++others > 3) continue;
      text += ", ";
      append_time(text, problem_.seconds(node, problem_.costs.representative(c)));
      text += " on " + names_[static_cast<std::size_t>(c)];
    }
    if (others == 0) text += ", and side by side with what runs elsewhere";
    return text;
  }

 private:
  bool reachable(int node, int device_class) const {
    const auto& allowed = problem_.allowed(problem_.group[static_cast<std::size_t>(node)]);
    return std::any_of(allowed.begin(), allowed.end(),
                       [&](int d) { return problem_.costs.class_of(d) == device_class; });
  }
  const Problem& problem_;
  std::vector<std::string> names_;
};

}  // namespace

Placement place_by_cost(const Graph& graph, const CostModel& costs, const Constraints& constraints,
                        Placement greedy) {
  const bool choice = std::any_of(
      constraints.groups.begin(), constraints.groups.end(),
      [&](auto& g) { return constraints.allowed[static_cast<std::size_t>(g.allowed)].size() > 1; });
  if (!choice) return greedy;
  const Problem problem(graph, costs, constraints);
  Assignment start;
  start.reserve(constraints.groups.size());
  for (const Constraints::Group& group : constraints.groups) start.push_back(group.greedy);
  Search search(problem, std::move(start));
  search.run();

  const Reasons reasons(problem);
  for (int i = 0; i < problem.size(); ++i) {
    const int group = problem.group[static_cast<std::size_t>(i)];
    NodePlacement& node =
        greedy.nodes[static_cast<std::size_t>(problem.nodes[static_cast<std::size_t>(i)]->id())];
    const int device = search.best()[static_cast<std::size_t>(group)];
    const bool free =
        problem.allowed(group).size() > 1 &&
        (node.by == PlacedBy::kGreedy || node.by == PlacedBy::kNear || device != node.device);
    node.device = device;
    if (!free) continue;
    node.by = PlacedBy::kCost;
    node.reason = reasons.of(i, device);
  }
  return greedy;
}

}  // namespace tandem
