#include "tandem/keras/internal/weights_file.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tandem/core/error.h"
#include "tandem/keras/internal/functional.h"
#include "tandem/keras/internal/names.h"
#include "tandem/keras/internal/sequential_impl.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/model_impl.h"
#include "tandem/ops/cast_ops.h"

namespace tandem::keras::internal {
namespace {

std::string below(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "/" + name;
}

// "dense", "dense_1", … : names of layers are not the same in every process, those of classes are.
class ContainerNames {
 public:
  std::string next(const std::string& class_name) {
    const std::string name = snake_case(class_name);
    const int count = counts_[name]++;
    return count == 0 ? name : cat(name, "_", count);
  }

 private:
  std::map<std::string, int> counts_;
};

constexpr const char* kIdfWeights = "vars/idf_weights";

std::string vocabulary_file(const std::string& folder) {
  return cat("assets/", folder, "/vocabulary.txt");
}

// The layer's and those of what Keras has below it.
std::vector<std::string> folders_of(const std::string& path, const StoredVocabulary& vocabulary) {
  std::vector<std::string> folders = {path};
  for (const std::string& part : vocabulary.parts()) folders.push_back(below(path, part));
  return folders;
}

class Walk {
 public:
  explicit Walk(WeightPlaces& found) : found_(found) {}

  void visit(LayerImpl& layer, const std::string& path) {
    if (!seen_.insert(&layer).second) return;
    if (auto* vocabulary = dynamic_cast<StoredVocabulary*>(&layer))
      found_.vocabularies[path] = vocabulary;
    found_.names[below(path, "vars")] = layer.name();
    const std::string owner = cat("layer '", layer.name(), "' (", layer.class_name(), ")");
    const bool is_model = dynamic_cast<const FunctionalImpl*>(&layer) != nullptr ||
                          dynamic_cast<const SequentialImpl*>(&layer) != nullptr;
    ContainerNames names;
    for (const LayerImpl::SavedPart& part : layer.saved_parts()) {
      if (part.variable.defined()) {
        // Keras has an object of its own for "_query_dense/_kernel", and a property without the _.
        const std::size_t slash = part.path.find('/');
        std::string object = slash == std::string::npos ? "" : part.path.substr(0, slash);
        if (object.starts_with('_')) object.erase(0, 1);
        add(below(path, object.empty() ? "vars" : object + "/vars"), part.variable, owner);
        continue;
      }
      const std::string& class_name = part.layer.class_name();
      if (is_model) {
        visit(*part.layer.impl(), below(path, "layers/" + names.next(class_name)));
      } else if (const std::size_t slash = part.path.find('/'); slash != std::string::npos) {
        // One of several in a list. Keras' attribute of a stack's cells is not what checkpoints of
        // Tandem call them.
        const bool stack = layer.class_name() == "StackedRNNCells";
        const std::string list = stack ? "cells" : part.path.substr(0, slash);
        visit(*part.layer.impl(), below(path, below(list, names.next(class_name))));
      } else {
        visit(*part.layer.impl(), below(path, part.path));
      }
    }
  }

  void add(const std::string& group, const Variable& variable, const std::string& owner) {
    found_.places.push_back({below(group, std::to_string(counts_[group]++)), variable, owner});
  }

 private:
  WeightPlaces& found_;
  std::set<const LayerImpl*> seen_;
  std::map<std::string, int> counts_;
};

}  // namespace

WeightPlaces weight_places(const Model& model, bool with_optimizer) {
  WeightPlaces found;
  Walk walk(found);
  walk.visit(model.model_impl(), "");
  if (with_optimizer) {
    const Optimizer& optimizer = model.optimizer();
    optimizer.build(model.trainable_weights());
    const std::string owner = cat("optimizer ", optimizer.impl()->class_name());
    for (const Variable& variable : optimizer.variables())
      walk.add("optimizer/vars", variable, owner);
    found.names["optimizer/vars"] = snake_case(optimizer.impl()->class_name());
  }
  return found;
}

io::Hdf5Content weights_content(const WeightPlaces& places) {
  io::Hdf5Content content;
  for (const auto& [path, name] : places.names) content.attributes[path]["name"] = name;
  for (const WeightPlaces::Place& place : places.places)
    content.datasets[place.path] = place.variable.read_value().array();
  for (const auto& [path, vocabulary] : places.vocabularies) {
    const Tensor weights = vocabulary->idf_weights();
    if (!weights.defined()) continue;
    for (const std::string& folder : folders_of(path, *vocabulary))
      content.datasets[below(folder, kIdfWeights)] = weights.array();
  }
  return content;
}

std::vector<io::ZipEntry> vocabulary_entries(const WeightPlaces& places) {
  std::vector<io::ZipEntry> entries;
  for (const auto& [path, vocabulary] : places.vocabularies) {
    const std::optional<std::string> text = vocabulary->vocabulary_text();
    if (!text) continue;
    for (const std::string& folder : folders_of(path, *vocabulary))
      entries.push_back({vocabulary_file(folder), *text});
  }
  return entries;
}

void assign_vocabularies(const WeightPlaces& places, const std::vector<io::ZipEntry>& entries,
                         const io::Hdf5Content& weights, const std::string& file) {
  for (const auto& [path, vocabulary] : places.vocabularies) {
    const std::string name = vocabulary_file(path);
    const auto entry = std::find_if(entries.begin(), entries.end(),
                                    [&](const io::ZipEntry& e) { return e.name == name; });
    if (entry == entries.end()) continue;
    const auto idf = weights.datasets.find(below(path, kIdfWeights));
    try {
      vocabulary->set_vocabulary_text(
          entry->content, idf == weights.datasets.end() ? Tensor() : Tensor(idf->second));
    } catch (const Error& error) {
      throw_error(error.code(), cat(file, ": ", name, ": ", error.what()));
    }
  }
}

void assign_weights(const WeightPlaces& places, const io::Hdf5Content& content,
                    const std::string& file) {
  std::map<std::string, std::size_t> wanted;  // by group
  for (const WeightPlaces::Place& place : places.places)
    ++wanted[place.path.substr(0, place.path.rfind('/'))];
  std::map<std::string, std::size_t> held;
  for (const auto& [path, array] : content.datasets) {
    const std::size_t slash = path.rfind('/');
    if (slash != std::string::npos) ++held[path.substr(0, slash)];
  }
  for (const WeightPlaces::Place& place : places.places) {
    const std::string group = place.path.substr(0, place.path.rfind('/'));
    const auto found = content.datasets.find(place.path);
    if (found == content.datasets.end()) {
      throw NotFoundError(cat(file, " has no value for ", place.owner, ", variable '",
                              place.variable.name(), "' (", place.path,
                              "): it is of another model."));
    }
    const Shape shape = place.variable.shape().to_shape();
    const DType dtype = found->second.dtype();
    // Keras' "int" has 32 or 64 bits by the library below it.
    const bool integers = is_integer(dtype) && is_integer(place.variable.dtype());
    if (!(found->second.shape() == shape) || (dtype != place.variable.dtype() && !integers)) {
      throw InvalidArgumentError(cat(file, ": ", place.owner, ", variable '", place.variable.name(),
                                     "' is ", place.variable.dtype(), shape, ", but the file has ",
                                     found->second.dtype(), found->second.shape(), " for it (",
                                     place.path, ")."));
    }
    if (held[group] > wanted[group]) {
      throw InvalidArgumentError(cat(file, " has ", held[group], " values for ", place.owner,
                                     ", which has ", wanted[group], " (", group,
                                     "): it is of another model or optimizer."));
    }
  }
  for (const WeightPlaces::Place& place : places.places) {
    place.variable.assign(cast(Tensor(content.datasets.at(place.path)), place.variable.dtype()));
  }
}

bool has_optimizer(const io::Hdf5Content& content) {
  const auto first = content.datasets.lower_bound("optimizer/vars/");
  return first != content.datasets.end() && first->first.starts_with("optimizer/vars/");
}

}  // namespace tandem::keras::internal
