#include "tandem/saved_model/internal/object_values.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/internal/wire.h"

namespace tandem::saved_model::internal {
namespace {

constexpr const char* kGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";

}  // namespace

ObjectValues::ObjectValues(const std::string& prefix, const io::proto::SavedObjectGraph& objects)
    : prefix_(prefix), matched_(objects.nodes.size(), -1) {
  if (prefix.empty()) return;
  reader_.emplace(prefix);
  if (!reader_->contains(kGraphKey))
    throw DataLossError(cat("Checkpoint ", prefix, " holds no objects (", kGraphKey, ")."));
  const Array bytes = reader_->read(kGraphKey);
  if (bytes.dtype() != DType::kString || bytes.num_elements() != 1)
    throw DataLossError(cat("The object graph of checkpoint ", prefix, " is no string."));
  try {
    io::proto::WireReader(*bytes.data<std::string>()).read(graph_);
  } catch (const DataLossError& error) {
    throw DataLossError(
        cat("The object graph of checkpoint ", prefix, " is damaged: ", error.what(), "."));
  }
  match(objects);
}

void ObjectValues::match(const io::proto::SavedObjectGraph& objects) {
  if (objects.nodes.empty() || graph_.nodes.empty()) return;
  const auto count = static_cast<std::int64_t>(graph_.nodes.size());
  std::vector<std::pair<int, int>> open{{0, 0}};
  while (!open.empty()) {
    const auto [ours, theirs] = open.back();
    open.pop_back();
    int& matched = matched_[static_cast<std::size_t>(ours)];
    if (matched >= 0) continue;
    matched = theirs;
    std::map<std::string, int> children;
    for (const auto& child : graph_.nodes[static_cast<std::size_t>(theirs)].children) {
      if (child.node_id < 0 || child.node_id >= count) {
        throw DataLossError(cat("The object graph of checkpoint ", prefix_,
                                " is damaged: there is no object ", child.node_id, "."));
      }
      children.emplace(child.local_name, child.node_id);
    }
    for (const auto& child : objects.nodes[static_cast<std::size_t>(ours)].children) {
      const auto found = children.find(child.local_name);
      if (found != children.end()) open.emplace_back(child.node_id, found->second);
    }
  }
}

std::string ObjectValues::key(int object, const std::string& attribute) const {
  const int matched = matched_[static_cast<std::size_t>(object)];
  if (matched < 0) return "";
  for (const auto& stored : graph_.nodes[static_cast<std::size_t>(matched)].attributes) {
    if (stored.name == attribute) return stored.checkpoint_key;
  }
  return "";
}

Array ObjectValues::read(const std::string& key) const { return reader_.value().read(key); }

}  // namespace tandem::saved_model::internal
