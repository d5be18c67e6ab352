#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tandem/keras/layer_impl.h"
#include "tandem/keras/model_impl.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/saving.h"

namespace tandem::keras {
class OptimizerImpl;
}

namespace tandem::keras::internal {

/// A model as the objects of a checkpoint: what `tf.train.Checkpoint(model=model)` makes of an
/// equal model of Keras.
class SavedTree {
 public:
  explicit SavedTree(const ModelImpl& model);
  /// Adds what the optimizer remembers.
  void add_optimizer(const OptimizerImpl& optimizer);

  const ObjectGraph& graph() const { return graph_; }
  /// By object; undefined where an object has no value.
  const std::vector<Variable>& variables() const { return variables_; }
  /// "Layer 'dense' (Dense)": whose value an object is.
  const std::string& owner(int object) const { return owners_[static_cast<std::size_t>(object)]; }
  static constexpr int kModel = 1;  // the object
  /// Within a StackedRNNCells, of whose cells TensorFlow's checkpoints hold nothing.
  bool is_of_stacked_cells(int object) const {
    return of_stacked_cells_[static_cast<std::size_t>(object)];
  }

 private:
  int add_object(int parent, const std::string& name);
  /// Where the last name of a path belongs: the object before it, made if missing, and the name.
  std::pair<int, std::string> last_of(int object, std::string path);
  void add_layer(int object, const LayerImpl& layer);
  void add_variable(int object, const std::string& path, const Variable& variable,
                    const std::string& owner);

  ObjectGraph graph_;
  std::vector<Variable> variables_;
  std::vector<std::string> owners_;
  std::vector<bool> of_stacked_cells_;
  std::vector<std::string> places_;  // paths from the root, as keys begin
  std::map<const LayerImpl*, int> layers_;
};

}  // namespace tandem::keras::internal
