#include "tandem/train/views.h"

#include <deque>
#include <set>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/runtime/saving.h"
#include "tandem/train/checkpoint_state.h"
#include "tandem/train/internal/object_tree.h"

namespace tandem::train {
namespace {

const ObjectGraph::Object& object_of(const ObjectGraph& graph, int node) {
  if (node < 0 || static_cast<std::size_t>(node) >= graph.objects.size()) {
    throw InvalidArgumentError(
        cat("There is no object ", node, "; there are ", graph.objects.size(), "."));
  }
  return graph.objects[static_cast<std::size_t>(node)];
}

std::map<std::string, int> children_of(const ObjectGraph& graph, int node) {
  const auto& children = object_of(graph, node).children;
  return {children.begin(), children.end()};
}

// Nearer ones first, with the path to each.
std::vector<std::pair<int, std::string>> walk(const ObjectGraph& graph) {
  std::vector<std::pair<int, std::string>> found;
  if (graph.objects.empty()) return found;
  std::set<int> seen{0};
  std::deque<std::pair<int, std::string>> due{{0, ""}};
  while (!due.empty()) {
    auto [node, path] = std::move(due.front());
    due.pop_front();
    for (const auto& [name, child] : object_of(graph, node).children) {
      if (seen.insert(child).second)
        due.emplace_back(child, path.empty() ? name : path + "/" + name);
    }
    found.emplace_back(node, std::move(path));
  }
  return found;
}

std::vector<int> numbers(const ObjectGraph& graph) {
  std::vector<int> out;
  for (const auto& [node, path] : walk(graph)) out.push_back(node);
  return out;
}

std::string path_of(const ObjectGraph& graph, int node) {
  object_of(graph, node);
  for (const auto& [found, path] : walk(graph)) {
    if (found == node) return path;
  }
  throw InvalidArgumentError(cat("No path leads from the root to object ", node, "."));
}

std::string checkpoint_at(const std::string& path) {
  if (fs::exists(path + ".index") || !fs::exists(path)) return path;
  if (!fs::file_system_of(path).stat(path).is_directory) return path;
  if (const auto latest = latest_checkpoint(path)) return *latest;
  throw NotFoundError(
      cat("Couldn't find 'checkpoint' file or checkpoints in given directory ", path));
}

}  // namespace

TrackableView::TrackableView(const Tracked& root)
    : graph_(std::make_shared<ObjectGraph>(internal::ObjectTree(root.object()).graph())) {}
std::map<std::string, int> TrackableView::children(int node) const {
  return children_of(*graph_, node);
}
std::vector<int> TrackableView::descendants() const { return numbers(*graph_); }
std::string TrackableView::path(int node) const { return path_of(*graph_, node); }

CheckpointView::CheckpointView(const std::string& save_path)
    : graph_(std::make_shared<ObjectGraph>(saving_for("td::train::CheckpointView")
                                               .open_checkpoint(checkpoint_at(save_path))
                                               ->graph())) {}
std::map<std::string, int> CheckpointView::children(int node) const {
  return children_of(*graph_, node);
}
std::vector<int> CheckpointView::descendants() const { return numbers(*graph_); }
std::string CheckpointView::path(int node) const { return path_of(*graph_, node); }

std::map<int, int> CheckpointView::match(const TrackableView& view) const {
  std::map<int, int> matched;
  if (graph_->objects.empty() || view.graph_->objects.empty()) return matched;
  std::deque<std::pair<int, int>> due{{0, 0}};
  matched[0] = 0;
  while (!due.empty()) {
    const auto [here, there] = due.front();
    due.pop_front();
    for (const auto& [name, child] : object_of(*graph_, here).children) {
      const int other = view.graph_->child(there, name);
      if (other >= 0 && matched.emplace(child, other).second) due.emplace_back(child, other);
    }
  }
  return matched;
}

CheckpointView::Difference CheckpointView::diff(const TrackableView& view) const {
  Difference out{match(view), {}, {}};
  std::set<int> taken;
  for (const auto& [here, there] : out.matched) taken.insert(there);
  for (const int node : descendants()) {
    if (!out.matched.contains(node)) out.only_in_checkpoint.push_back(node);
  }
  for (const int node : view.descendants()) {
    if (!taken.contains(node)) out.only_in_view.push_back(node);
  }
  return out;
}

}  // namespace tandem::train
