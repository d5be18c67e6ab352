#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/io/proto/messages.h"
#include "tandem/io/tensor_bundle.h"

namespace tandem::saved_model::internal {

/// The values of a SavedModel's objects: they are found in its checkpoint by the names that lead to
/// an object from the root.
class ObjectValues {
 public:
  /// `prefix` of the checkpoint; "" if there is none.
  ObjectValues(const std::string& prefix, const io::proto::SavedObjectGraph& objects);

  /// Whether there are any files.
  bool has_files() const { return reader_.has_value(); }
  /// The key of an object's attribute ("VARIABLE_VALUE"); "" if the checkpoint has none.
  std::string key(int object, const std::string& attribute) const;
  /// Throws NotFoundError, DataLossError.
  Array read(const std::string& key) const;
  bool contains(const std::string& key) const { return reader_ && reader_->contains(key); }

 private:
  void match(const io::proto::SavedObjectGraph& objects);
  std::string prefix_;
  std::optional<io::TensorBundleReader> reader_;
  io::proto::TrackableObjectGraph graph_;
  std::vector<int> matched_;  // the object of the checkpoint for each of the model, or -1
};

}  // namespace tandem::saved_model::internal
