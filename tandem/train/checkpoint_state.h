#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"

namespace tandem::train {

/// What the file `checkpoint` of a folder says: which checkpoints there are, and which is the
/// latest. TensorFlow's text form of its message CheckpointState.
struct CheckpointState {
  std::string model_checkpoint_path;
  std::vector<std::string> all_model_checkpoint_paths = {};  ///< oldest first
  std::vector<double> all_model_checkpoint_timestamps =
      {};  ///< seconds since 1970, one for each path
  double last_preserved_timestamp = 0;
};

/// Reads the file; paths relative to the folder are joined to it. Nothing where there is no such
/// file. Throws DataLossError that names file and line where it cannot be read.
TANDEM_EXPORT std::optional<CheckpointState> get_checkpoint_state(
    const String& directory, const String& latest_filename = "checkpoint");
/// Replaces the file, in one step and durably. Paths below the folder are written relative to it.
/// Call it when the checkpoints that it names are durable.
TANDEM_EXPORT void update_checkpoint_state(const String& directory, const CheckpointState& state,
                                           const String& latest_filename = "checkpoint");

/// The path of a folder's latest checkpoint, or nothing: where there is no state file, or the
/// checkpoint that it names is gone.
TANDEM_EXPORT std::optional<std::string> latest_checkpoint(
    const String& directory, const String& latest_filename = "checkpoint");

/// Text as in the file, for readers of other places. `name` is what errors call it.
TANDEM_EXPORT CheckpointState parse_checkpoint_state(std::string_view text, const String& name);

}  // namespace tandem::train
