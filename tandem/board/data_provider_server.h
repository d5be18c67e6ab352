#pragma once

#include <memory>
#include <string>

#include "tandem/core/export.h"
#include "tandem/io/event_store.h"

/// In libtandem_board.so, for which programs link tandem::board.
namespace tandem::board {

/// Lets TensorBoard show the summaries of a running process without files:
///
///     td::io::EventStore store;
///     td::board::DataProviderServer server(store);
///     std::cout << "tensorboard --grpc_data_provider " << server.address() << '\n';
///     auto on = store.writer("train").as_default();
///
/// A gRPC server of the service tensorboard.data.TensorBoardDataProvider, without encryption or
/// passwords: it listens on this machine alone unless `address` says otherwise. Ends when it is
/// destroyed.
class TANDEM_EXPORT DataProviderServer {
 public:
  /// `address` is HOST:PORT; with port 0 the system chooses one. Throws UnavailableError if it
  /// can't listen there.
  explicit DataProviderServer(const io::EventStore& store,
                              const std::string& address = "127.0.0.1:0");
  ~DataProviderServer();
  DataProviderServer(const DataProviderServer&) = delete;
  DataProviderServer& operator=(const DataProviderServer&) = delete;

  /// HOST:PORT, as TensorBoard takes it.
  const std::string& address() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::board
