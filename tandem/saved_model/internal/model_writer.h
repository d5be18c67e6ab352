#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/resource_handle.h"
#include "tandem/io/internal/body_export.h"
#include "tandem/io/proto/messages.h"
#include "tandem/runtime/saving.h"
#include "tandem/saved_model/internal/concrete.h"
#include "tandem/saved_model/internal/graph_builder.h"
#include "tandem/saved_model/internal/object.h"
#include "tandem/saved_model/save.h"

namespace tandem::saved_model::internal {

/// A module as the messages and files of a SavedModel.
class ModelWriter {
 public:
  ModelWriter(const Module& module, const SaveOptions& options);
  /// Writes all files to a folder that is there and empty.
  void write(const std::string& folder);

 private:
  // An object of the file: of the module, or one that only the file has.
  struct Entry {
    std::shared_ptr<Object> object;  // null: only the file has it
    std::string path;                // as keys of the checkpoint begin
    std::vector<std::pair<std::string, int>> children;
  };

  // Objects.
  void collect_captured();
  void number_objects();
  int add_entry(std::shared_ptr<Object> object, const std::string& path);
  void write_object(int id);
  void write_functions();
  void write_table(int id);
  void write_signatures();
  void write_gradients();
  int id_of_capture(const Tensor& capture);
  /// The name in the library of a function, which is described as well.
  std::string add_concrete(const Concrete& concrete, const FunctionRef& function,
                           const std::vector<Tensor>& captures);
  std::string add_function(const Concrete& concrete);
  std::string add_signature(const std::string& name, const Concrete& concrete);
  int add_function_object(const std::string& function);
  io::proto::SavedObject& node(int id) { return objects_.nodes[static_cast<std::size_t>(id)]; }
  Entry& entry(int id) { return entries_[static_cast<std::size_t>(id)]; }

  // The graph of TensorFlow 1.
  void write_graph();
  void write_saver();
  void write_graph_signature(const std::string& name, const Concrete& concrete);
  DType capture_dtype(int id);
  /// Inputs of a call in the graph for what a function captured, and their dtypes.
  void add_captures(const std::string& function, bool initializes, std::vector<std::string>& inputs,
                    std::vector<DType>& dtypes);
  std::string asset_file_name(const std::string& path);

  void write_variables(const std::string& folder);
  void write_assets(const std::string& folder) const;

  const SaveOptions& options_;
  std::shared_ptr<Object> root_;
  const Object* original_root_;
  std::vector<Entry> entries_;
  std::map<const Object*, int> ids_;
  std::map<const Object*, Resource*> captured_;  // variables for whose handles a copy stands
  std::vector<FunctionRef> kept_;                // made here: the library knows them by address
  std::map<const Resource*, int> resource_ids_;
  std::map<const TensorImpl*, int> tensor_ids_;
  std::vector<Tensor> constants_;  // that functions captured: their addresses stay theirs

  io::proto::SavedModel model_;
  io::proto::MetaGraphDef& meta_;
  io::proto::GraphDef& graph_;
  io::proto::SavedObjectGraph& objects_;
  io::LibraryExport library_;
  GraphBuilder builder_;
  std::string uuid_;
  std::map<const Concrete*, std::string> written_;  // names in the library
  std::set<const tandem::Function*> described_;
  std::map<int, std::pair<std::string, std::string>> tables_;  // functions that make and fill one
  std::map<std::string, std::string> signature_functions_;
  std::map<int, std::string> tensors_;      // of the graph, by object
  std::map<int, std::string> asset_inits_;  // what reads an asset's path before there is one
  std::vector<std::pair<std::string, std::string>> assets_;  // files, and their names in the model
  std::set<std::string> asset_names_;
};

}  // namespace tandem::saved_model::internal
