#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/runtime/profiler.h"

namespace tandem::io {

/// A step of training in a profile: what the thread does until the end of the block belongs to it.
/// Profiles without any take the calls of the function that took most of the time as steps.
///
///     td::io::ProfiledStep step("train", n);
class TANDEM_EXPORT ProfiledStep {
 public:
  ProfiledStep(std::string_view name, std::int64_t step);

 private:
  profiler::Scope scope_;
};

/// The profile as an XSpace (xplane.proto), which XProf reads: a plane for the host with a line for
/// each thread, one for each accelerator with a line for each of its streams, steps, kernels named
/// NODE:OP, copies, and the waits for input.
TANDEM_EXPORT std::string to_xspace(const profiler::Profile& profile);

/// The graphs of the functions that ran, as TensorBoard's graph page takes them: a serialized
/// RunMetadata, for a summary of the plugin "graph_run_metadata_graph" with the content "1".
TANDEM_EXPORT std::string to_run_metadata(const profiler::Profile& profile);

/// Writes LOGDIR/plugins/profile/RUN/HOST.xplane.pb, where TensorBoard's profile page looks for
/// it. `run` is the time, "2025_01_31_13_45_00", by default. Returns the path; throws the file
/// system's error.
TANDEM_EXPORT std::string write_tensorboard_profile(const std::string& logdir,
                                                    const profiler::Profile& profile,
                                                    const std::string& run = {});

}  // namespace tandem::io
