#pragma once

#include <map>
#include <memory>
#include <string>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/master/master.h"
#include "tandem/distribute/internal/rpc/method_table.h"

namespace tandem::distribute {

inline constexpr const char* kRegisterClosure = "/tandem.ClosureService/Register";
inline constexpr const char* kRunClosure = "/tandem.ClosureService/Run";

/// What a worker does for a ParameterServerStrategy: it keeps closures, graphs with parameters, and
/// runs them: it pulls the parameters that have changed, computes, and pushes the gradients under
/// the closure's number. A parameter server that cannot be reached is waited for, so that one may
/// be started again meanwhile, or another one may take over (ParameterClient); one that is
/// synchronous and calls a gradient stale has it computed again.
class ClosureService {
 public:
  /// What is given by reference must outlive this, and this the table's calls.
  ClosureService(Master& master, const Peers& peers) : master_(master), peers_(peers) {}
  void add_to(MethodTable& methods);

 private:
  struct Closure;
  class Run;
  void add(Bytes request, const CallContext& context, const ReplyDone& done);
  void run(Bytes request, const CallContext& context, const ReplyDone& done);

  Master& master_;
  const Peers& peers_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Closure>> closures_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
