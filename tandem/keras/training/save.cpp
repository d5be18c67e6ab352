#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/fs/file_system.h"
#include "tandem/keras/internal/safetensors_weights.h"
#include "tandem/keras/internal/saved_tree.h"
#include "tandem/keras/internal/trainer.h"
#include "tandem/keras/internal/weights_file.h"
#include "tandem/keras/model.h"
#include "tandem/runtime/saving.h"
#include "tandem/runtime/trace.h"

namespace tandem::keras {
namespace {

using internal::SavedTree;

void require_built(const Model& model, const char* what) {
  if (model.built()) return;
  throw FailedPreconditionError(
      cat(what, ": model '", model.name(),
          "' has no weights yet. Give its first layer an Input, call it, or call build(shape)."));
}

SavedTree tree_of(const Model& model, bool with_optimizer, const char* what) {
  require_built(model, what);
  SavedTree tree(model.model_impl());
  if (with_optimizer) {
    const Optimizer& optimizer = model.optimizer();
    optimizer.build(model.trainable_weights());
    tree.add_optimizer(*optimizer.impl());
  }
  return tree;
}

void warn_of_stacked_cells(const SavedTree& tree) {
  static std::atomic<bool> reported{false};
  for (std::size_t i = 0; i < tree.variables().size(); ++i) {
    if (!tree.variables()[i].defined() || !tree.is_of_stacked_cells(static_cast<int>(i))) continue;
    if (!reported.exchange(true)) {
      log(LogLevel::kWarning,
          cat("save_weights: TensorFlow cannot read the weights of StackedRNNCells from a ",
              "checkpoint (", tree.graph().objects[i].key,
              "); load_weights can. A model of layers in a row instead, such as LSTM(units, ",
              "{.return_sequences = true}), is exchanged in full."));
    }
    return;
  }
}

// Where the values of our objects are in a checkpoint.
class Matching {
 public:
  Matching(const SavedTree& tree, const ObjectGraph& file)
      : tree_(tree), file_(file), matched_(tree.graph().objects.size()) {
    // The checkpoint of tf.train.Checkpoint(model=model), or of (model).
    const int model = file.child(0, "model");
    file_model_ = model >= 0 ? model : 0;
    match(SavedTree::kModel, file_model_);
  }

  /// The object of the file with the value of one of ours, or -1.
  int value_of(std::size_t object) const { return matched_[object].value_or(-1); }

  /// The key of a value of the file's model, and on request of its optimizer, that none of ours
  /// took, or "".
  std::string left_over(bool with_optimizer) const {
    std::set<int> used;
    for (const auto& object : matched_) used.insert(object.value_or(-1));
    std::set<int> seen;
    std::vector<int> open{file_model_};
    if (const int optimizer = file_.child(0, "optimizer"); with_optimizer && optimizer >= 0)
      open.push_back(optimizer);
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      if (!seen.insert(at).second) continue;
      const ObjectGraph::Object& object = file_.objects[static_cast<std::size_t>(at)];
      if (!object.key.empty() && used.count(at) == 0) return object.key;
      for (const auto& [name, child] : object.children) {
        const bool beside = at == file_model_ &&
                            (name == "save_counter" || (name == "optimizer" && !with_optimizer));
        if (!beside) open.push_back(child);
      }
    }
    return "";
  }

 private:
  void match(int ours, int theirs) {
    std::optional<int>& matched = matched_[static_cast<std::size_t>(ours)];
    if (matched) return;
    matched = theirs;
    const auto& children = tree_.graph().objects[static_cast<std::size_t>(ours)].children;
    const bool compact = numbers_layers_alone(ours, theirs);
    for (std::size_t i = 0; i < children.size(); ++i) {
      const int found = find(theirs, compact ? std::to_string(i) : children[i].first);
      if (found >= 0) match(children[i].second, found);
    }
  }
  // Tandem once left out the ops that compute masks where it numbers a model's layers.
  bool numbers_layers_alone(int ours, int theirs) const {
    const auto& children = tree_.graph().objects[static_cast<std::size_t>(ours)].children;
    const std::size_t count = children.size();
    const auto number = [](const auto& child) {
      return child.first.find_first_not_of("0123456789") == std::string::npos;
    };
    const auto known = [&](const auto& child) { return file_.child(theirs, child.first) >= 0; };
    if (!std::all_of(children.begin(), children.end(), number) ||
        std::all_of(children.begin(), children.end(), known))
      return false;
    if (file_.objects[static_cast<std::size_t>(theirs)].children.size() != count) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (file_.child(theirs, std::to_string(i)) < 0) return false;
    }
    return true;
  }
  // A Sequential's layers are those of a functional model within it: such differences are passed
  // over.
  int find(int theirs, const std::string& name) const {
    const int child = file_.child(theirs, name);
    if (child >= 0) return child;
    if (name == "_functional") return theirs;
    const int within = name == "_operations" ? file_.child(theirs, "_functional") : -1;
    return within >= 0 ? file_.child(within, name) : -1;
  }

  const SavedTree& tree_;
  const ObjectGraph& file_;
  std::vector<std::optional<int>> matched_;
  int file_model_;
};

// What an optimizer keeps of a weight is named "adam/dense_kernel_momentum", and two optimizers may
// keep as many things of the same shapes. The weight's name may differ, its end says what it is.
std::string last_word(const std::string& name) {
  const std::size_t at = name.find_last_of("_/");
  return at == std::string::npos ? name : name.substr(at + 1);
}

// A layer's name as nodes can have it; layers may be named as anyone likes.
std::string node_name(std::string name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
  };
  for (char& c : name) {
    if (!letter(c) && c != '/' && c != '-' && c != '>') c = '_';
  }
  return name.empty() || !letter(name.front()) ? "n" + name : name;
}

// Which form a path asks for.
bool is_keras_weights(const std::string& path) { return path.ends_with(".weights.h5"); }
bool is_keras_file(const std::string& path) { return path.ends_with(".keras"); }
bool is_safetensors(const std::string& path) {
  return path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json");
}

// "model.weights.h5": what such a file's checkpoint would be called, or "" if it is no name of one.
std::string without_keras_ending(const std::string& path) {
  for (const std::string_view ending : {".h5", ".hdf5", ".keras"}) {
    if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  }
  return "";
}

bool is_folder(const std::string& path) {
  return fs::exists(path) && fs::file_system_of(path).stat(path).is_directory;
}

void check_save_path(const std::string& path) {
  constexpr std::string_view kFormat =
      "What is written is a checkpoint of TensorFlow, PATH.index and PATH.data-00000-of-00001: ";
  if (path.empty() || path.back() == '/') {
    throw InvalidArgumentError(cat("save_weights: '", path,
                                   "' must end in a name that the checkpoint's files begin with, ",
                                   "as in \"checkpoints/model\"."));
  }
  if (const std::string name = without_keras_ending(path); !name.empty()) {
    throw InvalidArgumentError(cat("save_weights: '", path, "' names a file of Keras' own format. ",
                                   kFormat, "give '", name, "'."));
  }
  if (is_folder(path)) {
    throw InvalidArgumentError(
        cat("save_weights: '", path, "' is a folder. ", kFormat, "give '", path, "/model'."));
  }
}

void check_load_path(const std::string& path) {
  if (fs::exists(path + ".index")) return;
  if (!without_keras_ending(path).empty()) {
    if (!fs::exists(path)) throw NotFoundError(cat("load_weights: there is no file '", path, "'."));
    throw InvalidArgumentError(cat("load_weights: '", path,
                                   "' is a file of an older Keras, which is not read. In Keras 3 ",
                                   "model.save_weights(\"PATH.weights.h5\") writes what is."));
  }
  if (is_folder(path)) {
    throw InvalidArgumentError(
        cat("load_weights: '", path, "' is a folder. Give what the names of ",
            "the checkpoint's files begin with: '", path, "/model' for model.index."));
  }
}

}  // namespace

void Model::save_weights(const std::string& path, const SaveWeightsOptions& options) const {
  if (is_keras_weights(path)) {
    require_built(*this, "save_weights");
    const auto places = internal::weight_places(*this, options.optimizer);
    fs::write_file(path, io::encode_hdf5(internal::weights_content(places)));
    return;
  }
  if (is_safetensors(path)) return internal::save_safetensors_weights(*this, path, options);
  check_save_path(path);
  const SavedTree tree = tree_of(*this, options.optimizer, "save_weights");
  warn_of_stacked_cells(tree);
  std::vector<Tensor> values;
  for (const Variable& variable : tree.variables())
    values.push_back(variable.defined() ? variable.read_value() : Tensor());
  saving_for("Model::save_weights").write_checkpoint(path, tree.graph(), values);
}

void Model::load_weights(const std::string& path, const LoadWeightsOptions& options) const {
  if (is_safetensors(path)) return internal::load_safetensors_weights(*this, path, options);
  if ((is_keras_weights(path) || is_keras_file(path)) && !fs::exists(path + ".index")) {
    require_built(*this, "load_weights");
    const auto places = internal::weight_places(*this, options.optimizer);
    internal::assign_weights(places, internal::read_weights_file(path), path);
    return;
  }
  check_load_path(path);
  const auto file = saving_for("Model::load_weights").open_checkpoint(path);
  const SavedTree tree = tree_of(*this, options.optimizer, "load_weights");
  const Matching matching(tree, file->graph());
  std::vector<std::pair<Variable, Tensor>> changes;
  for (std::size_t i = 0; i < tree.variables().size(); ++i) {
    const Variable& variable = tree.variables()[i];
    if (!variable.defined()) continue;
    const auto where = [&] {
      return cat("load_weights: ", tree.owner(static_cast<int>(i)), ", variable '", variable.name(),
                 "'");
    };
    const int object = matching.value_of(i);
    const std::string key =
        object < 0 ? "" : file->graph().objects[static_cast<std::size_t>(object)].key;
    if (key.empty()) {
      throw NotFoundError(cat(where(), ": checkpoint ", path, " has no value for it (",
                              tree.graph().objects[i].key, ").",
                              tree.is_of_stacked_cells(static_cast<int>(i))
                                  ? " TensorFlow writes no weights of StackedRNNCells."
                                  : ""));
    }
    const Shape shape = file->shape(key);
    const Shape wanted = variable.shape().to_shape();
    if (file->dtype(key) != variable.dtype() || !(shape == wanted)) {
      throw InvalidArgumentError(cat(where(), " is ", variable.dtype(), wanted, ", but checkpoint ",
                                     path, " has ", file->dtype(key), shape, " for it (", key,
                                     ")."));
    }
    const std::string& theirs = file->graph().objects[static_cast<std::size_t>(object)].name;
    if (key.find("/_variables/") != std::string::npos && !theirs.empty() &&
        last_word(theirs) != last_word(variable.name())) {
      throw InvalidArgumentError(cat(where(), ": checkpoint ", path, " has '", theirs,
                                     "' in its place: it is a checkpoint of another optimizer."));
    }
    changes.emplace_back(variable, file->read(key));
  }
  const std::string extra = matching.left_over(options.optimizer);
  if (!extra.empty()) {
    throw InvalidArgumentError(cat("load_weights: checkpoint ", path, " holds ", extra,
                                   ", for which model '", name(),
                                   "' has no variable: it is a checkpoint of another model",
                                   options.optimizer ? " or another optimizer." : "."));
  }
  // Nothing is changed unless all fits.
  for (const auto& [variable, value] : changes) variable.assign(value);
}

ExportedModel Model::export_graph(const String& path, const ExportGraphOptions& options) const {
  const Saving& saving = saving_for("Model::export_graph");
  const std::vector<KerasTensor> inputs = model_impl().input_tensors();
  if (inputs.empty()) {
    throw FailedPreconditionError(
        cat("export_graph: the inputs of model '", name(),
            "' are not known. Build it, or, if it is of a class of your own, call it with Input(…) "
            "and export the Model of that input and its result."));
  }
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  ExportGraphOptions names = options;
  for (const KerasTensor& input : inputs) {
    dtypes.push_back(input.dtype());
    shapes.push_back(input.shape());
  }
  // What the caller names comes first; layers give way to it and to one another.
  std::set<std::string> taken(options.inputs.begin(), options.inputs.end());
  taken.insert(options.outputs.begin(), options.outputs.end());
  const auto free = [&](const std::string& layer) {
    const std::string wanted = node_name(layer);
    std::string name = wanted;
    for (int i = 1; !taken.insert(name).second; ++i) name = cat(wanted, "_", i);
    return name;
  };
  if (options.inputs.empty()) {
    for (const KerasTensor& input : inputs) names.inputs.push_back(free(input.name()));
  }
  if (options.outputs.empty()) {
    for (const std::string& layer : model_impl().output_names())
      names.outputs.push_back(free(layer));
  }
  const TraceScope outside(nullptr);
  const ConcreteFunction predict =
      trace_function("predict", dtypes, shapes, [&](std::span<const Tensor> x) {
        return model_impl().run(std::vector<Tensor>(x.begin(), x.end()),
                                CallOptions{.training = false});
      });
  WrittenGraph written = saving.write_graph(path, predict, names.inputs, names.outputs);
  return {std::move(written.inputs), std::move(written.outputs)};
}

}  // namespace tandem::keras
