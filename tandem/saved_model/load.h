#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/core/string_list.h"
#include "tandem/saved_model/module.h"

namespace tandem::saved_model {

struct LoadOptions {
  /// Tags of the graph to load, all of them; empty: the only graph of the file, or the one that is
  /// tagged "serve".
  StringList tags = {};
  /// Whether assets and values may lie behind symbolic links that lead out of the folder.
  bool follow_links_out = false;
};

/// Reads a SavedModel: a folder that tf.saved_model.save, `model.export` of Keras, the builder of
/// TensorFlow 1 or `save` wrote.
///
///     Module model = td::saved_model::load("folder");
///     Tensor y = model.signature("serving_default")({{"x", x}})["output_0"];
///     Tensor z = model.function("f")(x);          // by the names of Python's attributes
///
/// Variables have their values, tables are filled. Functions are imported when they are first
/// called, and can be traced and differentiated, custom gradients included. Of a file of TensorFlow
/// 1 there are signatures, and the variables as "variables.0" and so on. The model keeps the
/// runtime that was current; several models never share state.
///
/// Throws NotFoundError if the folder or a file of it is missing, or no graph has the tags;
/// DataLossError for damaged files; InvalidArgumentError for what contradicts itself, and for
/// assets that lie outside of the folder, by name or by a symbolic link. What this build cannot run
/// is an UnimplementedError of the call that needs it. Errors name the folder.
TANDEM_EXPORT Module load(const std::string& folder, const LoadOptions& options = {});
inline Module load(const char* folder, const LoadOptions& options = {}) {
  return load(tandem::internal::name_argument(folder, "the folder of a saved model"), options);
}

/// The model whose saved_model.pb these bytes are, and that has no other files; errors call it
/// `name`.
TANDEM_EXPORT Module load_bytes(std::string_view bytes, const std::string& name,
                                const LoadOptions& options = {});

/// A graph of a SavedModel, as `saved_model_cli show` lists it.
struct MetaGraph {
  struct SignatureInfo {
    std::string name;
    std::string method_name;
    std::vector<TensorSpec> inputs;  ///< by name
    std::vector<TensorSpec> outputs;
  };
  std::vector<std::string> tags;
  std::string tensorflow_version;
  bool has_objects = false;  ///< of TensorFlow 2
  std::vector<SignatureInfo> signatures;
  std::vector<std::string> assets;  ///< names of files in the folder "assets"
};
/// What graphs a SavedModel holds; nothing of them is loaded. Throws as `load`.
TANDEM_EXPORT std::vector<MetaGraph> list_graphs(const std::string& folder);

}  // namespace tandem::saved_model
