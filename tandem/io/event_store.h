#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/io/summary.h"

namespace tandem::io {

/// Keeps summaries in memory, for TensorBoard to ask for instead of reading files: what
/// board::DataProviderServer serves. A handle of shared, thread-safe state.
///
///     td::io::EventStore store;
///     auto writer = store.writer("train");
///     auto on = writer.as_default();
///
/// A series that has grown long is thinned out: every second point of it goes, never the last.
class TANDEM_EXPORT EventStore {
 public:
  EventStore();

  /// A writer of the run of that name. Summaries are in the store a moment after they were written,
  /// and at once after a flush.
  summary::SummaryWriter writer(const std::string& run) const;

  /// What a method of the service tensorboard.data.TensorBoardDataProvider answers a serialized
  /// request by: serialized responses, more than one only of ReadBlob. Throws UnimplementedError
  /// for unknown methods, InvalidArgumentError for malformed requests, NotFoundError for blobs
  /// that there are not.
  std::vector<std::string> answer(std::string_view method, std::string_view request) const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace tandem::io
