#pragma once

#include <memory>
#include <string>

#include "tandem/core/export.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/runtime/runtime.h"

namespace tandem {

/// State of its own on the devices of a runtime: the containers of named variables, tables, queues
/// and the like, and what stateful ops keep. A `Runtime` is devices and threads; any number of
/// sessions may share one.
///
///     td::Session mine;
///     td::RuntimeScope scope(mine.runtime());   // ops in the block find this session's resources
///
/// Without `isolate_state` the session is a name for the runtime's own state, which all such
/// sessions share, as those of one TensorFlow server do. When an isolated session ends, its
/// resources end with it: using a handle of one throws FailedPreconditionError, and so does making
/// another one. Tensors stay. Thread-safe; keeps the runtime's memory, but not the runtime: calls
/// in it throw CancelledError once that was destroyed.
class TANDEM_EXPORT Session {
 public:
  struct Options {
    bool isolate_state = true;  ///< resources of its own, not those of the runtime
  };
  /// In the thread's current runtime.
  Session();
  explicit Session(const Options& options);
  ~Session();
  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The runtime as calls of this session see it; for RuntimeScope.
  Runtime& runtime() const;
  bool isolated() const;
  /// Ends an isolated session; what is in progress ends as it can. Does nothing the second time, or
  /// to a session that is not isolated.
  void close();
  /// Empties a container ("localhost" is the one of ops that name none): its variables and other
  /// resources are gone, and their handles with them.
  void reset(const std::string& container = kDefaultContainer) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tandem
