#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/train/trackable.h"

namespace tandem {
struct ObjectGraph;
}

namespace tandem::train {

/// The objects that are reached from a root now, to look at: by number, the root 0, those that are
/// nearer to it first.
class TANDEM_EXPORT TrackableView {
 public:
  explicit TrackableView(const Tracked& root);

  /// The parts of an object: their names and numbers.
  std::map<std::string, int> children(int node) const;
  /// All numbers.
  std::vector<int> descendants() const;
  /// "model/layers/0", as in the keys of a checkpoint; "" for the root.
  std::string path(int node) const;

 private:
  friend class CheckpointView;
  std::shared_ptr<const ObjectGraph> graph_;
};

/// The objects in a checkpoint, by number, the root 0. Throws NotFoundError if there is no
/// checkpoint, InvalidArgumentError if it holds no objects (one of a TensorFlow 1 Saver).
class TANDEM_EXPORT CheckpointView {
 public:
  /// `save_path`: a checkpoint, or a folder, whose latest one is meant.
  explicit CheckpointView(const std::string& save_path);

  std::map<std::string, int> children(int node) const;
  std::vector<int> descendants() const;
  std::string path(int node) const;

  /// Numbers here and there of objects that a restore would pair: those reached by equal names.
  std::map<int, int> match(const TrackableView& view) const;

  /// What a restore would leave out on either side: objects of the checkpoint, and objects that
  /// there are.
  struct Difference {
    std::map<int, int> matched;
    std::vector<int> only_in_checkpoint;
    std::vector<int> only_in_view;
  };
  Difference diff(const TrackableView& view) const;

 private:
  std::shared_ptr<const ObjectGraph> graph_;
};

}  // namespace tandem::train
