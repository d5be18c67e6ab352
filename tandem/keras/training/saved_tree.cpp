#include "tandem/keras/internal/saved_tree.h"

#include <cstddef>

#include "tandem/core/error.h"
#include "tandem/keras/optimizer.h"

namespace tandem::keras::internal {
namespace {

constexpr const char* kValueSuffix = "/.ATTRIBUTES/VARIABLE_VALUE";

// A point begins what TensorFlow adds to a path, so those in names are doubled.
std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '.' ? std::string("..") : std::string(1, c);
  return text;
}

}  // namespace

SavedTree::SavedTree(const ModelImpl& model) {
  graph_.objects.emplace_back();
  variables_.emplace_back();
  owners_.emplace_back();
  of_stacked_cells_.push_back(false);
  places_.emplace_back();
  add_layer(add_object(0, "model"), model);
}

int SavedTree::add_object(int parent, const std::string& name) {
  const int object = static_cast<int>(graph_.objects.size());
  graph_.objects.emplace_back();
  variables_.emplace_back();
  owners_.emplace_back();
  of_stacked_cells_.push_back(of_stacked_cells_[static_cast<std::size_t>(parent)]);
  const std::string& place = places_[static_cast<std::size_t>(parent)];
  places_.push_back(place.empty() ? escaped(name) : place + "/" + escaped(name));
  graph_.objects[static_cast<std::size_t>(parent)].children.emplace_back(name, object);
  return object;
}

std::pair<int, std::string> SavedTree::last_of(int object, std::string path) {
  for (std::size_t slash; (slash = path.find('/')) != std::string::npos;) {
    const std::string name = path.substr(0, slash);
    path.erase(0, slash + 1);
    const int child = graph_.child(object, name);
    object = child >= 0 ? child : add_object(object, name);
  }
  return {object, path};
}

void SavedTree::add_layer(int object, const LayerImpl& layer) {
  layers_[&layer] = object;
  if (layer.class_name() == "StackedRNNCells")
    of_stacked_cells_[static_cast<std::size_t>(object)] = true;
  for (const LayerImpl::SavedPart& part : layer.saved_parts()) {
    if (part.variable.defined()) {
      add_variable(object, part.path, part.variable,
                   cat("Layer '", layer.name(), "' (", layer.class_name(), ")"));
      continue;
    }
    const auto [parent, name] = last_of(object, part.path);
    const auto known = layers_.find(part.layer.impl().get());
    if (known != layers_.end()) {
      graph_.objects[static_cast<std::size_t>(parent)].children.emplace_back(name, known->second);
    } else {
      add_layer(add_object(parent, name), *part.layer.impl());
    }
  }
}

void SavedTree::add_variable(int object, const std::string& path, const Variable& variable,
                             const std::string& owner) {
  const auto [parent, name] = last_of(object, path);
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    if (!variables_[i].defined() || !variables_[i].is_same(variable)) continue;
    graph_.objects[static_cast<std::size_t>(parent)].children.emplace_back(name,
                                                                           static_cast<int>(i));
    return;
  }
  const auto leaf = static_cast<std::size_t>(add_object(parent, name));
  graph_.objects[leaf].key = places_[leaf] + kValueSuffix;
  graph_.objects[leaf].name = variable.name();
  variables_[leaf] = variable;
  owners_[leaf] = owner;
}

void SavedTree::add_optimizer(const OptimizerImpl& optimizer) {
  const int object = add_object(kModel, "optimizer");
  for (const auto& [path, variable] : optimizer.saved_parts())
    add_variable(object, path, variable, cat("Optimizer ", optimizer.class_name()));
}

}  // namespace tandem::keras::internal
