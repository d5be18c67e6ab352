#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/core/ref.h"
#include "tandem/graph/rendezvous_key.h"

namespace tandem {

class Cancellation;

/// Where the parts of one step meet: a value that one part sends under a key is what another part
/// receives under it, whichever comes first. Each key is sent once and received once a step.
///
/// Values may be dead: those of a branch that was not taken. Their Array is empty.
///
/// Thread-safe. One object serves one step and lives until all its parts have ended.
class TANDEM_EXPORT Rendezvous : public RefCounted {
 public:
  /// Called exactly once, by any thread and with no lock held: with the failure, or with the value.
  using RecvDone = std::function<void(std::exception_ptr error, Array value, bool is_dead)>;

  /// Makes a value available; never waits. Throws AlreadyExistsError naming the key when it has
  /// been sent and not received yet, and the abort's error once the step is aborted.
  virtual void send(const RendezvousKey& key, Array value, bool is_dead) = 0;

  /// Calls `done` with the value once it is there, perhaps before returning. `done` gets
  /// CancelledError when `cancellation` (which may be null and must live until then) says so, the
  /// abort's error once the step is aborted, AlreadyExistsError when the key is being received
  /// already.
  virtual void recv_async(const RendezvousKey& key, const Cancellation* cancellation,
                          RecvDone done) = 0;

  /// Ends the step: waiting receives and all later calls get `error`, values that were not
  /// received are dropped. Of several aborts the first one counts.
  virtual void start_abort(std::exception_ptr error) = 0;

 protected:
  ~Rendezvous() override;
};

/// A rendezvous between parts in one process.
class TANDEM_EXPORT LocalRendezvous final : public Rendezvous {
 public:
  LocalRendezvous();
  ~LocalRendezvous() override;

  void send(const RendezvousKey& key, Array value, bool is_dead) override;
  void recv_async(const RendezvousKey& key, const Cancellation* cancellation,
                  RecvDone done) override;
  void start_abort(std::exception_ptr error) override;

  /// A part has ended: the devices whose names begin with `device_prefix` ("/job:worker/replica:0/
  /// task:1/") send nothing more. Receives of what they have not sent, waiting or to come, end with
  /// an InternalError that names the key and the device that should have sent it.
  void close_source(std::string_view device_prefix);

  /// Keys of values that were not received, and of receives that wait for one; sorted. Both are
  /// empty after a step that went well.
  std::vector<std::string> unreceived() const;
  std::vector<std::string> unanswered() const;

 private:
  struct State;
  // Shared with the callbacks of cancellations, which may come when the rendezvous is gone.
  std::shared_ptr<State> state_;
};

}  // namespace tandem
