#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/runtime/saving.h"
#include "tandem/train/checkpoint.h"
#include "tandem/train/internal/object_tree.h"

namespace tandem::train::internal {

/// A checkpoint being restored: values are given to the objects that there are, and later to those
/// that are added. Used by one thread at a time.
class Restoration {
 public:
  Restoration(const std::string& prefix, const RestoreOptions& options);
  ~Restoration();

  const std::string& prefix() const { return prefix_; }
  /// Gives values to objects of the tree that have none yet. Nothing is changed unless all fit:
  /// throws InvalidArgumentError naming object, key and both shapes where they do not,
  /// DataLossError where the files are damaged (RestoreOptions::check_first).
  void apply(const ObjectTree& tree);
  /// Objects that had a value in the checkpoint by now.
  bool is_restored(const ObjectTree::Node& node, const TrackedValue& value) const;
  /// Keys of the checkpoint that no object took.
  std::vector<std::string> unused() const;
  /// Whether an object besides the root and its counter had a value in the checkpoint.
  bool matched_any() const;
  /// The counterpart of an object has parts that the object lacks, which may still come.
  bool awaits_parts(const ObjectTree& tree, std::size_t node) const;
  /// The object's counterpart, by its place in the tree that was applied last; -1: none.
  int counterpart(std::size_t node) const { return theirs_[node]; }

  bool expects_partial = false;

 private:
  struct Change {
    const TrackedValue* value;
    std::string path;
    std::string key;
    std::pair<const void*, std::string> id;
    std::shared_ptr<Trackable> owner;
    std::function<Tensor(const Tensor&)> convert;
  };
  void match(const ObjectTree& tree);
  void match_slots(const ObjectTree& tree);
  void match_slots_by_name(const ObjectTree& tree);
  void match_steps(const ObjectTree& tree);
  std::string key_of(std::size_t number, const TrackedValue& value) const;
  std::string legacy_key(std::size_t optimizer, const std::string& name) const;
  std::string renamed(const std::string& name) const;
  void check(const Change& change) const;
  std::string key_by_name(const TrackedValue& value) const;

  std::string prefix_;
  std::map<std::string, std::string> renamed_;
  bool check_first_;
  std::unique_ptr<ObjectCheckpoint> file_;
  std::vector<int> theirs_;  // by node of the tree
  // What is stored in another form than ours, by node: the key, and what makes our value of it.
  struct Legacy {
    std::string key;
    std::function<Tensor(const Tensor&)> convert = {};
    bool same_type = true;  // dtype and shape are ours
  };
  std::map<std::size_t, Legacy> legacy_;
  std::set<int> matched_;       // objects of the file
  std::set<std::string> used_;  // keys
  // Objects that had their value; they are held, so that no other takes their address.
  std::map<std::pair<const void*, std::string>, std::shared_ptr<Trackable>> restored_;
};

}  // namespace tandem::train::internal
